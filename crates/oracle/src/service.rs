//! The running oracle: builds tables beside the readers, swaps them, answers the console.
