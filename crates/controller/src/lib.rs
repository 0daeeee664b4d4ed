//! The API server that kubectl talks to, and its revisioned store.
