//! Tests of the times from which latencies count.

use std::rc::Rc;

use engine::Value;
use runtime::{Handle, Nanos, Runtime, Semaphore};
use workload::{
    Arrivals, ClientOptions, KvTarget, NoIterators, OpKind, Pace, RunReport, Session, StartError,
};

use crate::store::workload;

/// A target that executes one operation at a time, 1 ms each.
#[derive(Clone)]
struct OneServer {
    handle: Handle,
    server: Rc<Semaphore>,
}

impl OneServer {
    async fn serve(&self) {
        let _turn = self.server.acquire(1).await;
        self.handle.sleep(Nanos::from_millis(1)).await;
    }
}

impl KvTarget for OneServer {
    type Error = &'static str;
    type Iterator = NoIterators<&'static str>;

    async fn get(&self, _key: &[u8]) -> Result<Option<Value>, Self::Error> {
        self.serve().await;
        Ok(None)
    }

    async fn put(&self, _key: &[u8], _value: Value) -> Result<(), Self::Error> {
        self.serve().await;
        Ok(())
    }

    async fn delete(&self, _key: &[u8]) -> Result<bool, Self::Error> {
        self.serve().await;
        Ok(false)
    }

    fn why_no_iterators(&self) -> Option<&'static str> {
        Some("this store keeps no key order")
    }

    async fn create_iterator(&self, _bound: Option<&[u8]>) -> Result<Self::Iterator, Self::Error> {
        Err("this store keeps no key order")
    }
}

/// Loads 1000 records of workload C.
fn load(pace: Pace) -> RunReport {
    let runtime = Runtime::new(1);
    let handle = runtime.handle();
    let target = OneServer { handle: handle.clone(), server: Rc::new(Semaphore::new(1)) };
    let mut session = Session::new(handle, target, workload("c", &[]), 1).unwrap();
    let options = ClientOptions { pace, ..ClientOptions::closed(1) };
    runtime.block_on(async move { session.load(&options, |_, _| {}).await.unwrap() })
}

fn open(rate: f64, arrivals: Arrivals, outstanding: usize) -> RunReport {
    load(Pace::Open { rate, arrivals, outstanding })
}

#[test]
fn scans_are_refused_with_the_reason_where_there_are_no_iterators() {
    let runtime = Runtime::new(1);
    let handle = runtime.handle();
    let target = OneServer { handle: handle.clone(), server: Rc::new(Semaphore::new(1)) };
    for name in ["e", "seekrandom", "mixgraph"] {
        let workload = workload(name, &[]);
        let error = Session::new(handle.clone(), target.clone(), workload, 1).err().unwrap();
        assert_eq!(error, StartError::Scans { why: "this store keeps no key order" });
        let told = "the workload has scans (scanproportion is above 0), which need iterators: this \
                    store keeps no key order; of the built-in workloads all but e, seekrandom and \
                    mixgraph do without";
        assert_eq!(error.to_string(), told);
    }
}

#[test]
fn a_closed_loop_measures_from_issue() {
    let report = load(Pace::Closed { outstanding: 1 });
    let puts = report.summary(OpKind::Put).unwrap();
    assert!((puts.p50_us - 1000.0).abs() < 1.0 && (puts.max_us - 1000.0).abs() < 1.0);
    assert_eq!(report.elapsed(), Nanos::from_millis(1000));
    assert!((report.throughput() - 1000.0).abs() < 1e-9);
    assert_eq!(report.timeline.windows.len(), 11);
    assert_eq!(report.timeline.windows[1].operations, 100);
    let four = load(Pace::Closed { outstanding: 4 });
    assert!((four.summary(OpKind::Put).unwrap().p50_us - 4000.0).abs() < 4.0);
}

#[test]
fn an_open_loop_above_capacity_shows_the_growing_queue() {
    // Arrivals every 0.5 ms, served one per ms: the n-th waits 0.5 ms * n.
    for outstanding in [1, 8] {
        let report = open(2000.0, Arrivals::Fixed, outstanding);
        let puts = report.summary(OpKind::Put).unwrap();
        assert!((puts.max_us / 500_500.0 - 1.0).abs() < 0.002, "{}", puts.max_us);
        assert!((puts.p50_us / 250_500.0 - 1.0).abs() < 0.01, "{}", puts.p50_us);
        let means: Vec<f64> =
            report.timeline.windows.iter().map(|window| window.puts.mean_us).collect();
        assert!(means.is_sorted(), "{means:?}");
        assert!((490..=500).contains(&(report.late.0 / 1_000_000)), "{}", report.late);
        assert!((report.throughput() - 1000.0).abs() < 1.0);
    }
}

#[test]
fn an_open_loop_below_capacity_keeps_its_rate_and_shows_no_queue() {
    let report = open(500.0, Arrivals::Fixed, 8);
    let puts = report.summary(OpKind::Put).unwrap();
    assert!((puts.max_us - 1000.0).abs() < 1.0);
    assert!((report.throughput() - 500.0).abs() < 1.0);
}

#[test]
fn poisson_arrivals_queue_as_theory_says() {
    // M/D/1 at half load: the mean wait is half a service time, so the mean latency is 1.5 ms.
    let report = open(500.0, Arrivals::Poisson, 64);
    let mean = report.summary(OpKind::Put).unwrap().mean_us;
    assert!((1300.0..1700.0).contains(&mean), "{mean}");
}
