//! A row as it stands on the terminal.

use crate::figures::{Figure, Measured, Spread};
use crate::load::{CONNECTIONS, IN_FLIGHT, Offer};
use crate::rows::Row;

pub fn head(row: &Row, offer: &Offer, exports: u64) {
    let pace = offer.pace.map_or("as fast as taken".to_owned(), |pace| format!("{pace} spans/s"));
    println!(
        "\n{}: {} ({})\n  {exports} exports of {} spans, {} bytes a span, {pace}; \
         {IN_FLIGHT} under way over {CONNECTIONS} connections",
        row.id,
        row.says,
        row.flow.load.says(),
        offer.template.spans(),
        offer.template.bytes() / offer.template.spans(),
    );
}

const COLUMNS: [Figure; 8] = [
    Figure::Rate,
    Figure::DeliveredP50,
    Figure::DeliveredP99,
    Figure::AnsweredP99,
    Figure::Peak,
    Figure::BytesOut,
    Figure::Refused,
    Figure::Revisions,
];

pub fn print(row: &Row, all: &[Measured]) {
    print!("  {:36} {:>24} {:>8}", "", "CPU ns/span", "× floor");
    COLUMNS.iter().for_each(|column| print!(" {:>16}", column.says()));
    println!();
    let floor = all.iter().find(|measured| measured.subject == "floor");
    for measured in all {
        let cpu = measured.spread(Figure::Cpu).map_or("error".to_owned(), spread);
        let floors = floor.and_then(|floor| measured.beside(floor, Figure::Cpu, |a, b| a / b));
        let floors = floors.map_or(String::new(), |spread| format!("{:.2}", spread.median));
        print!("  {:36} {cpu:>24} {floors:>8}", measured.subject);
        for column in COLUMNS {
            let shown = measured.spread(column).map(|spread| Figure::show(spread.median));
            print!(" {:>16}", shown.unwrap_or_default());
        }
        println!();
        for (round, error) in measured.errors() {
            println!("  {:36} ERROR in round {round}: {error}", "");
        }
    }
    for target in row.targets {
        let outcome = target.outcome(all);
        let verdict = if outcome.met { "meets" } else { "MISSES" };
        let figure = outcome.measured.map_or("no figure".to_owned(), spread);
        println!("  {verdict:6} {}: {figure}", outcome.says);
    }
    if let (Some(before), Some(floor)) = (row.floor_beforehand, floor)
        && let Some(now) = floor.spread(Figure::Cpu)
    {
        let valid = now.median <= before * crate::rows::FLOOR_AT_MOST;
        let says = if valid { "" } else { ": far above it, THIS RUN IS INVALID" };
        println!("  floor {:.0} ns, {before:.0} measured beforehand{says}", now.median);
    }
}

/// least, median, most
fn spread(spread: Spread) -> String {
    let [least, median, most] = [spread.least, spread.median, spread.most].map(Figure::show);
    format!("{least}…{median}…{most}")
}
