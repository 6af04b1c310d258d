"""What several verbs share: commit results, the executor, schemas, record keys."""
