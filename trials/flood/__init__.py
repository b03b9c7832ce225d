"""The flood trial: very many sandboxes, one after the other and beside each other."""
