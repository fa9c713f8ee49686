//! Data on a real store.
