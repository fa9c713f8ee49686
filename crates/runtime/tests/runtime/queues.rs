//! Bounded channels and notifications.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::rc::Rc;
use std::task::Poll;

use runtime::{Nanos, Notify, Runtime, bounded};

#[test]
fn a_full_channel_holds_its_senders_back() {
    let rt = Runtime::new(1);
    let (sender, mut receiver) = bounded(2);
    let sent = Rc::new(RefCell::new(Vec::new()));
    let (handle, log) = (rt.handle(), Rc::clone(&sent));
    rt.handle().spawn("producer", async move {
        for item in 0..5 {
            assert_eq!(sender.send(item).await, Ok(()));
            log.borrow_mut().push(handle.now().0);
        }
    });
    let handle = rt.handle();
    let received = rt.block_on(async move {
        let mut received = Vec::new();
        for round in 1..=6 {
            handle.sleep_until(Nanos(round * 10)).await;
            received.push(receiver.recv().await);
        }
        received
    });
    assert_eq!(*sent.borrow(), [0, 0, 10, 20, 30]);
    assert_eq!(received, [Some(0), Some(1), Some(2), Some(3), Some(4), None]);
}

#[test]
fn a_channel_ends_when_the_last_sender_is_gone_and_it_is_empty() {
    let rt = Runtime::new(1);
    let (sender, mut receiver) = bounded(4);
    let other = sender.clone();
    let handle = rt.handle();
    rt.handle().spawn("sender", async move {
        assert_eq!(sender.send(1).await, Ok(()));
        drop(sender);
        handle.sleep(Nanos(10)).await;
        assert_eq!(other.send(2).await, Ok(()));
        handle.sleep(Nanos(10)).await;
        drop(other); // Wakes the waiting receiver.
    });
    let handle = rt.handle();
    let seen = rt.block_on(async move {
        let mut seen = Vec::new();
        for _ in 0..3 {
            seen.push((receiver.recv().await, handle.now().0));
        }
        seen
    });
    assert_eq!(seen, [(Some(1), 0), (Some(2), 10), (None, 20)]);
}

#[test]
fn a_sender_gets_its_item_back_when_the_receiver_is_gone() {
    let rt = Runtime::new(1);
    let (sender, receiver) = bounded(1);
    let handle = rt.handle();
    let waiting = rt.handle().spawn("sender", async move {
        assert_eq!(sender.send("kept").await, Ok(()));
        (sender.send("waits").await, sender.send("too late").await, handle.now())
    });
    let handle = rt.handle();
    let results = rt.block_on(async move {
        handle.sleep(Nanos(10)).await;
        drop(receiver);
        waiting.await
    });
    assert_eq!(results, (Err("waits"), Err("too late"), Nanos(10)));
}

#[test]
fn nothing_is_lost_or_doubled_between_many_senders() {
    for seed in 0..10 {
        let rt = Runtime::new(seed);
        let (sender, mut receiver) = bounded(3);
        for task in 0..8 {
            let sender = sender.clone();
            rt.handle().spawn("sender", async move {
                for item in 0..20 {
                    assert_eq!(sender.send(task * 20 + item).await, Ok(()));
                }
            });
        }
        drop(sender);
        let mut items = rt.block_on(async move {
            let mut items = Vec::new();
            while let Some(item) = receiver.recv().await {
                items.push(item);
            }
            items
        });
        items.sort_unstable();
        assert_eq!(items, (0..160).collect::<Vec<_>>());
    }
}

#[test]
fn a_notification_wakes_all_that_wait() {
    let rt = Runtime::new(1);
    let (notify, woken) = (Rc::new(Notify::default()), Rc::new(Cell::new(0)));
    for _ in 0..5 {
        let (notify, woken) = (Rc::clone(&notify), Rc::clone(&woken));
        rt.handle().spawn("waiter", async move {
            notify.notified().await;
            woken.set(woken.get() + 1);
        });
    }
    rt.run_until(Nanos(1));
    assert_eq!(woken.get(), 0);
    notify.notify_all();
    rt.run_until(Nanos(1));
    assert_eq!(woken.get(), 5);
}

#[test]
fn a_task_that_waits_twice_is_woken_though_one_of_them_gives_up() {
    let rt = Runtime::new(1);
    let (notify, woken) = (Rc::new(Notify::default()), Rc::new(Cell::new(false)));
    let (own, is_woken) = (Rc::clone(&notify), Rc::clone(&woken));
    rt.handle().spawn("waiter", async move {
        let (mut first, mut second) = (Box::pin(own.notified()), Box::pin(own.notified()));
        let mut rounds = 0;
        std::future::poll_fn(|cx| {
            rounds += 1;
            let is_ready = first.as_mut().poll(cx).is_ready() | second.as_mut().poll(cx).is_ready();
            first = Box::pin(own.notified()); // Drops the previous future, which stops waiting.
            if is_ready { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
        assert_eq!(rounds, 2, "it is woken once");
        is_woken.set(true);
    });
    rt.run_until(Nanos(1));
    notify.notify_all();
    rt.run_until(Nanos(1));
    assert!(woken.get());
}

#[test]
fn a_notification_between_asking_and_awaiting_is_not_lost() {
    let rt = Runtime::new(1);
    rt.block_on(async {
        let notify = Notify::default();
        notify.notify_all(); // Before the future is created, so it does not count.
        let notified = notify.notified();
        notify.notify_all();
        notified.await;
    });
}

#[test]
fn wait_until_sees_a_condition_that_changes_several_times() {
    let rt = Runtime::new(1);
    let (notify, value) = (Rc::new(Notify::default()), Rc::new(Cell::new(0)));
    let (handle, tick, counted) = (rt.handle(), Rc::clone(&notify), Rc::clone(&value));
    rt.handle().spawn("counter", async move {
        for _ in 0..10 {
            handle.sleep(Nanos(1)).await;
            counted.set(counted.get() + 1);
            tick.notify_all();
        }
    });
    let handle = rt.handle();
    let now = rt.block_on(async move {
        notify.wait_until(|| value.get() == 7).await;
        handle.now()
    });
    assert_eq!(now, Nanos(7));
}
