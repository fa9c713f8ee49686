//! The runtime as its users see it: order, time, tasks that end or hang, what tasks wait for, real time.

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
