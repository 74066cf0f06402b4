"""What combines tasks: fair comparisons."""
