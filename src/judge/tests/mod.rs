//! Tables of cases for every rule of judgement.
