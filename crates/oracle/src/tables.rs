//! What queries read: for a source router and a prefix group, the finished place in the order.
