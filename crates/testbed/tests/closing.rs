//! Closing removes everything from outside, and nothing can be started afterwards. Alone in its
//! process: it ends the testbed for all.
#![forbid(unsafe_code)]

mod root {
    use std::path::Path;
    use testbed::{Bird, Namespace, close};

    #[test]
    fn nothing_is_left_and_nothing_begins() {
        let namespace = Namespace::new("closed").unwrap();
        let mut bird =
            Bird::start(&namespace, "router id 192.0.2.1;\nprotocol device {}\n").unwrap();
        let (socket, name) = (bird.socket(), namespace.name().to_owned());
        assert!(socket.exists() && Path::new("/run/netns").join(&name).exists());
        close();
        assert!(!socket.exists() && !Path::new("/run/netns").join(&name).exists());
        assert!(bird.process().ended().is_some(), "BIRD was killed");
        assert!(Namespace::new("late").unwrap_err().to_string().contains("closed"));
        assert!(namespace.spawn(&["true"]).is_err());
    }
}
