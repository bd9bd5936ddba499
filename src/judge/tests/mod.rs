//! Tables of cases for every rule of judgement: what went in, in a name; what must come out, in a
//! line.

mod build;
mod endings;
mod finds;
mod operations;
mod rows;
mod time;
mod total;
