"""Whether the words about a data set are true: verdicts beside what plans from the same data gain."""
