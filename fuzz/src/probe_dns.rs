//! Any answer of a name server to a question, and any text as a question: a name that is taken is asked
//! for in a message that no server takes for an answer.

use probe::tools::dns::{
    Target,
    message::{Name, Question},
};

/// Runs the target on an input.
pub fn run(data: &[u8]) {
    let name: Name = "www.example.org".parse().expect("a name");
    let question = Question { id: 0x1234, name, kind: 28 };
    if let Ok(reply) = question.reply(data) {
        assert!(reply.code < 16 && data.starts_with(&[0x12, 0x34]));
    }
    let Ok(text) = std::str::from_utf8(data) else { return };
    let _ = text.parse::<Target>();
    if let Ok(name) = text.parse::<Name>() {
        let question = Question { id: 1, name, kind: 1 };
        assert!(question.message().len() <= 512);
        assert!(question.reply(&question.message()).is_err());
    }
}
