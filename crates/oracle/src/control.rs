//! What can be asked of the running oracle over the control socket.
