"""PostgreSQL and Valkey from wheels, and the supervisor that runs them beside the platform."""
