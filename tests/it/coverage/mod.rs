//! Coverage and its advice: what is claimed is what moves when another hand does as it says.

mod advice;
mod recipes;
mod scene;
mod tried;
