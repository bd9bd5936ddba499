//! The log on disk, seen from outside: what a process that ends, a file that is damaged and a
//! directory that is full or shared leave of it.

mod checkpoint;
mod crash;
mod damage;
mod full;
mod model;
mod space;
mod support;
