//! The benchmark measures programs that answer; its figures are printed, not judged: the machine may
//! be busy.

#[test]
fn the_cost_of_a_packet_is_measured() {
    testbed::need_root();
    let costs = datapath::bench::nanoseconds_a_packet().unwrap();
    let bare = costs.iter().find(|cost| cost.name == "bare MAC swap").unwrap().ns;
    for cost in &costs {
        println!("{:40} {:6.2} ns  {:.3}", cost.name, cost.ns, cost.ns / bare);
        assert!(cost.ns > 0.0);
    }
    assert_eq!(costs.len(), 6);
}
