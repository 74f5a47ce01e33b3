use splitmix::Random;
use topo::{Builder, Change, ExternalPath, Feed, Options, RouterId, generate};

use super::{super::*, *};

fn metric(cost: &str) -> Metric {
    Metric::compile("test", cost).unwrap()
}

fn policy(costs: &[&str], list: Vec<(Subject, Adjustment)>) -> Policy {
    Policy {
        metrics: costs.iter().map(|cost| metric(cost)).collect(),
        adjustments: Adjustments::new(list).unwrap(),
        default_router: None,
    }
}

fn options(policy: &Policy) -> Options {
    Options { ases: policy.interest(), marks: policy.marks(), ..Options::default() }
}

/// A mesh with a few hundred routes.
fn mesh(policy: &Policy) -> Builder {
    generate::mesh(3, 24, 4, generate::realistic_table(5, 400, 50)).builder(options(policy))
}

fn built(builder: &mut Builder, policy: &Arc<Policy>, previous: Option<&Tables>) -> Tables {
    Tables::build(builder.view(), Arc::clone(policy), previous)
}

/// Routes to documentation prefixes, which the mesh does not have.
fn route(exit: RouterId, third: u64, as_distance: u16) -> Change {
    let prefix = format!("203.0.113.{}/29", third % 32 * 8).parse().unwrap();
    Change::Route { prefix, exit, path: ExternalPath { as_distance, as_number: 64500 } }
}

fn shared(a: &Tables, b: &Tables) -> (usize, usize) {
    let rows =
        |tables: &Tables| tables.rows.iter().flatten().flatten().cloned().collect::<Vec<_>>();
    let (a, b) = (rows(a), rows(b));
    (a.iter().zip(&b).filter(|(a, b)| Arc::ptr_eq(a, b)).count(), b.len())
}

#[test]
fn a_rank_is_the_position_of_the_cost() {
    let policy = Arc::new(policy(&["latency", "weight + 8 * as_distance"], vec![]));
    let mut builder = mesh(&policy);
    let tables = built(&mut builder, &policy, None);
    for &router in tables.view.sources() {
        let tree = tables.view.tree(router);
        for metric in 0..2 {
            let row = tables.row(metric, Some(router));
            let cost = |group| Some(policy.metrics[metric].cost(&tree.properties(group)?));
            let mut costs: Vec<f64> =
                tables.view.groups.iter().filter_map(|(_, group)| cost(group)).collect();
            costs.sort_unstable_by(f64::total_cmp);
            costs.dedup();
            assert_eq!(row.distinct(), costs.len());
            for (id, group) in tables.view.groups.iter() {
                let expected =
                    cost(group).map(|cost| costs.iter().position(|c| *c == cost).unwrap());
                assert_eq!(row.rank(id), expected.map_or(UNKNOWN, |rank| rank as u16));
                assert_eq!(row.cost(id), cost(group));
                assert_eq!(tables.cost(metric, router, id), cost(group));
            }
        }
    }
    assert_eq!(tables.row(0, Some(RouterIndex(0))).rank(GroupId(u32::MAX)), UNKNOWN);
}

#[test]
fn what_is_not_a_number_is_unknown() {
    let policy = Arc::new(policy(&["sqrt(2.5 - as_distance)"], vec![]));
    let tables = built(&mut mesh(&policy), &policy, None);
    let row = tables.row(0, tables.view.sources().first().copied());
    let (known, unknown): (Vec<_>, Vec<_>) =
        tables.view.groups.iter().partition(|(id, _)| row.rank(*id) != UNKNOWN);
    assert!(known.iter().all(|(_, group)| group.exits.iter().any(|e| e.path.as_distance <= 2)));
    assert!(unknown.len() > 10, "{} are unknown", unknown.len());
}

#[test]
fn without_a_source_all_that_is_known_is_equal_but_for_adjustments() {
    let preferred = Subject::Prefix("203.0.113.0/24".parse().unwrap());
    let policy = Arc::new(policy(&["latency"], vec![(preferred, Adjustment::Prefer)]));
    let mut builder = mesh(&policy);
    let exit = builder.topology().routers().next().unwrap().0;
    builder.apply(Feed::OPERATOR, route(exit, 1, 1)).unwrap();
    let tables = built(&mut builder, &policy, None);
    for row in [tables.row(0, None), tables.row(0, Some(RouterIndex(9999))), tables.row(7, None)] {
        for (id, group) in tables.view.groups.iter() {
            let expected = match (id, group.mark) {
                (GroupId::UNKNOWN, _) => UNKNOWN,
                (_, Mark(1)) => 0,
                _ => 1,
            };
            assert_eq!(row.rank(id), expected);
        }
    }
}

#[test]
fn a_default_router_has_a_row_and_is_where_unknown_peers_are() {
    let mut policy = policy(&["latency"], vec![]);
    let mut builder = mesh(&policy);
    // A router without prefixes: otherwise no request comes from it.
    let lonely: RouterId = "10.99.0.1".parse().unwrap();
    builder.apply(Feed::OPERATOR, Change::Router { id: lonely, name: None }).unwrap();
    policy.default_router = Some(lonely);
    let policy = Arc::new(policy);
    let tables = built(&mut builder, &policy, None);
    let index = tables.view.graph.index(lonely);
    assert_eq!(tables.source("198.51.100.1".parse().unwrap()), index);
    assert_eq!(tables.source_of_prefixes(None, Some("3fff::/20".parse().unwrap())), index);
    // It has no links: nothing can be reached, and that is known.
    let row = tables.row(0, index);
    assert!(tables.view.groups.iter().all(|(id, _)| row.rank(id) == UNKNOWN));
}

#[test]
fn preferred_goes_first_and_avoided_last_and_penalties_count() {
    let prefix = |text: &str| Subject::Prefix(text.parse().unwrap());
    let policy = Arc::new(policy(
        &["as_distance"],
        vec![
            (prefix("203.0.113.0/29"), Adjustment::Avoid),
            (prefix("203.0.113.8/29"), Adjustment::Prefer),
            (prefix("203.0.113.16/29"), Adjustment::Penalty(0.5)),
            (Subject::As(64510), Adjustment::Penalty(-100.0)),
            (Subject::As(64511), Adjustment::Prefer),
        ],
    ));
    let mut builder = mesh(&policy);
    let exit = builder.topology().routers().next().unwrap().0;
    for (third, as_distance) in [(0, 1), (1, 9), (2, 3), (3, 3)] {
        builder.apply(Feed::OPERATOR, route(exit, third, as_distance)).unwrap();
    }
    for (third, as_number) in [(4, 64510), (5, 64511)] {
        let Change::Route { prefix, exit, .. } = route(exit, third, 0) else { unreachable!() };
        let path = ExternalPath { as_distance: 5, as_number };
        builder.apply(Feed::OPERATOR, Change::Route { prefix, exit, path }).unwrap();
    }
    let tables = built(&mut builder, &policy, None);
    let row = tables.row(0, tables.view.sources().first().copied());
    let of = |text: &str| row.rank(tables.view.group(text.parse().unwrap()));
    let [avoided, preferred, dearer, plain, cheaper, preferred_as] = [
        "203.0.113.1",
        "203.0.113.9",
        "203.0.113.17",
        "203.0.113.25",
        "203.0.113.33",
        "203.0.113.41",
    ]
    .map(of);
    assert_eq!((preferred_as, preferred, cheaper), (0, 1, 2));
    assert_eq!(dearer, plain + 1);
    assert_eq!(usize::from(avoided), row.distinct() - 1);
    assert_eq!(of("198.51.100.1"), UNKNOWN);
    assert_eq!(row.cost(tables.view.group("203.0.113.33".parse().unwrap())), Some(-95.0));
}

#[test]
fn rows_are_kept_while_only_prefixes_move() {
    let policy = Arc::new(policy(&["latency", "as_distance"], vec![]));
    let mut builder = mesh(&policy);
    let before = built(&mut builder, &policy, None);
    // A prefix more at a router that has some: its group is there already.
    let (_, router) = builder.topology().internal().next().unwrap();
    let prefix = "203.0.113.0/24".parse().unwrap();
    builder.apply(Feed::OPERATOR, Change::Internal { prefix, router }).unwrap();
    let after = built(&mut builder, &policy, Some(&before));
    assert_eq!(after.view.groups.len(), before.view.groups.len());
    let (same, all) = shared(&before, &after);
    assert_eq!(same, all);
    assert!(all > 10);
    // Another policy, and another graph, make all of them again.
    let other =
        Arc::new(Policy { metrics: vec![metric("loss"), metric("weight")], ..(*policy).clone() });
    assert_eq!(shared(&after, &built(&mut builder, &other, Some(&after))).0, 0);
    let id = "10.99.0.1".parse().unwrap();
    builder.apply(Feed::OPERATOR, Change::Router { id, name: None }).unwrap();
    assert_eq!(shared(&after, &built(&mut builder, &policy, Some(&after))).0, 0);
}

#[test]
fn tables_after_any_changes_are_those_built_at_once() {
    let policy = Arc::new(policy(&["latency + as_distance", "as_distance"], vec![]));
    let mut builder = mesh(&policy);
    let routers: Vec<_> = builder.topology().routers().map(|(id, _)| id).collect();
    let mut random = Random::new(11);
    let mut tables = built(&mut builder, &policy, None);
    let mut extended = 0;
    for _ in 0..60 {
        for _ in 0..=random.below(3) {
            let exit = *random.pick(&routers).unwrap();
            let change = route(exit, random.below(32), random.below(12) as u16);
            match (&change, random.below(3)) {
                (Change::Route { prefix, exit, .. }, 0) => {
                    let withdraw = Change::Withdraw { prefix: *prefix, exit: *exit };
                    // It may not be there.
                    _ = builder.apply(Feed(7), withdraw);
                }
                _ => builder.apply(Feed(7), change).unwrap(),
            }
        }
        let next = built(&mut builder, &policy, Some(&tables));
        let anew = Tables::build(Arc::clone(&next.view), Arc::clone(&policy), None);
        assert_eq!(next.rows, anew.rows);
        assert_eq!(next.unsourced, anew.unsourced);
        extended += usize::from(next.view.groups.len() > tables.view.groups.len());
        tables = next;
    }
    assert!(extended > 5, "groups were added {extended} times");
}

#[test]
fn more_costs_than_ranks_share_them_in_order() {
    let keys: Vec<_> = (0..200_000u32)
        .map(|i| {
            let class = [Class::Preferred, Class::Ordinary, Class::Avoided][(i % 3) as usize];
            // Some cost the same as another.
            Some(Key { class, cost: f64::from(i.wrapping_mul(2_654_435_761) >> 13) })
        })
        .collect();
    let chosen: Vec<_> = (0..keys.len() as u32).map(Some).chain([None]).collect();
    let row = row(&chosen, &keys);
    assert!(!row.exact);
    assert_eq!(row.ranks.last(), Some(&UNKNOWN));
    let mut order: Vec<_> = keys.iter().flatten().zip(row.ranks.iter()).collect();
    order.sort_by(|(a, _), (b, _)| a.cmp(b));
    let mut longest = 0;
    let mut run = 0;
    for pair in order.windows(2) {
        let [(a, at), (b, next)] = pair else { unreachable!() };
        assert!(at <= next && **next < UNKNOWN);
        assert!(a.cmp(b).is_ne() || at == next, "equal costs share a rank");
        assert!(a.class == b.class || at < next, "classes do not");
        run = if at == next { run + usize::from(a.cmp(b).is_ne()) } else { 0 };
        longest = longest.max(run);
    }
    // Some 130,000 distinct costs in 65,535 ranks: neighbours by twos and threes.
    assert!((1..=3).contains(&longest), "{longest}");
    assert!(extended(&row, &[Some(0)], &keys).is_none());
}
