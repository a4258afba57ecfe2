"""What may be concluded at any time from bounded values that come one by one."""
