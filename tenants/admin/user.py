"""People."""

from django.contrib import admin
from django.contrib.auth.admin import UserAdmin

from tenants.models import User

admin.site.register(User, UserAdmin)
