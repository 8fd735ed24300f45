"""What every family stands on: parameters, runs, results, files."""
