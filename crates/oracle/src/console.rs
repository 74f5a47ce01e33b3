//! `nigh oracle console`: the commands over the control socket, with history and completion.
