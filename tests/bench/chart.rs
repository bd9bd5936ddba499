//! Bars of one figure, as SVG: the median as a bar, the least and the most as a line over it.

use crate::figures::{Figure, Measured};
use crate::markdown::shown;

const WIDTH: f64 = 760.0;
const LABELS: f64 = 250.0;
const VALUES: f64 = 170.0;
const LINE: f64 = 30.0;
const HEAD: f64 = 34.0;

pub fn bars(title: &str, figure: Figure, all: &[Measured]) -> String {
    let spreads = all.iter().map(|measured| (measured.subject, measured.spread(figure)));
    let spreads: Vec<_> = spreads.filter_map(|(name, spread)| Some((name, spread?))).collect();
    let most = spreads.iter().map(|(_, spread)| spread.most).fold(f64::MIN_POSITIVE, f64::max);
    let scale = (WIDTH - LABELS - VALUES) / most;
    let height = HEAD + LINE * spreads.len() as f64 + 8.0;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" \
         font-family=\"sans-serif\" font-size=\"13\">\n\
         <rect width=\"{WIDTH}\" height=\"{height}\" fill=\"#ffffff\"/>\n\
         <text x=\"10\" y=\"20\" font-weight=\"bold\">{}: {}</text>\n",
        escaped(title),
        figure.says()
    );
    for (at, (name, spread)) in spreads.iter().enumerate() {
        let top = HEAD + LINE * at as f64;
        let (bar, middle) = (spread.median * scale, top + LINE / 2.0);
        let (low, high) = (LABELS + spread.least * scale, LABELS + spread.most * scale);
        out += &format!(
            "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>\n\
             <rect x=\"{LABELS}\" y=\"{}\" width=\"{bar:.1}\" height=\"{}\" fill=\"#4c78a8\"/>\n\
             <line x1=\"{low:.1}\" x2=\"{high:.1}\" y1=\"{middle}\" y2=\"{middle}\" stroke=\"#222222\"/>\n\
             <text x=\"{:.1}\" y=\"{}\">{}</text>\n",
            LABELS - 8.0,
            middle + 4.0,
            escaped(name),
            top + 5.0,
            LINE - 10.0,
            high + 8.0,
            middle + 4.0,
            shown(*spread),
        );
    }
    out + "</svg>\n"
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}
