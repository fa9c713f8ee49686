//! Tests of the runtime's public interface: order, time, tasks that end or hang, synchronization,
//! and real time.

mod broken;
mod order;
mod queues;
mod randomness;
mod real;
mod real_io;
mod resources;
mod semaphores;
mod tasks;
mod time;
