// What the search of the site shows first: pages for readers before decisions, which have the same words.
var Scorer = {
  score: ([page, , , , score]) => (page.startsWith("docs/adr/") ? score - 20 : score),
  objNameMatch: 11, objPartialMatch: 6, objPrio: { 0: 15, 1: 5, 2: -5 }, objPrioDefault: 0,
  title: 15, partialTitle: 7, term: 5, partialTerm: 2,
};
