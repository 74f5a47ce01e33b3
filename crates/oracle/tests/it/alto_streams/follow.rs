//! Following questions while the maps change.

use crate::alto_streams::fake::{COST_MAP, Fake, eventually};
use oracle::alto::{
    resource::{Request, Resource, Response},
    updates::{
        follow::{Answers, Follower, Question},
        graph::Bounds,
    },
};
use std::{
    net::{IpAddr, Ipv4Addr},
    sync::{
        Arc, Barrier,
        atomic::{AtomicBool, Ordering},
    },
};
use tokio::sync::watch;

const CLIENT: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// Maps that answer when the test lets them.
struct Held {
    maps: Fake,
    asked: AtomicBool,
    go: Barrier,
}

impl Answers for Held {
    fn resources(&self) -> &[Resource] {
        self.maps.resources()
    }

    fn respond(&self, request: &Request<'_>) -> Response {
        self.asked.store(true, Ordering::Release);
        self.go.wait();
        self.maps.respond(request)
    }
}

/// Maps that come while a question is asked for the first time are not missed: the round that was waiting for
/// the answer asks it again.
#[tokio::test]
async fn maps_that_come_while_a_question_is_asked() {
    let held =
        Arc::new(Held { maps: Fake::new(), asked: AtomicBool::new(false), go: Barrier::new(2) });
    let first: Arc<dyn Answers> = held.clone();
    let (maps, current) = watch::channel(Some(first));
    let bounds = Bounds { versions: 8, bytes: 1 << 20 };
    let follower = Arc::new(Follower::new(current, bounds, 8));
    let mut rounds = follower.generation();
    tokio::spawn(follower.clone().run());
    let resource = held.resource(COST_MAP).expect("a cost map");
    let question = Question::new(resource, None, CLIENT);
    let following = tokio::spawn({
        let follower = follower.clone();
        async move { follower.follow(question, CLIENT).await }
    });
    eventually("the question is asked", || held.asked.load(Ordering::Acquire)).await;

    let next = Fake::new().with_cost(99);
    maps.send_replace(Some(Arc::new(next.clone())));
    // The round begins, and waits for the answer.
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    held.go.wait();
    let followed = following.await.expect("no panic").expect("an answer");
    rounds.changed().await.expect("a round");
    let graph = followed.graph();
    let latest = graph.as_ref().expect("still followed").latest();
    assert_eq!(latest.text, next.cost_map.to_string());
}
