// Sphinx names a stemmer for Chinese that it does not ship: words in Latin letters have English stems in its index.
class ChineseStemmer {
  stemWord(word) {
    return new EnglishStemmer().stemWord(word);
  }
}
// The index has pairs of characters (docs/_ext/site_search.py), so a query is divided into the same.
var splitQuery = (query) =>
  query
    .split(/[^\p{Letter}\p{Number}_]+/u)
    .flatMap((part) => part.match(/[\u3400-\u9fff]+|[^\u3400-\u9fff]+/g) ?? [])
    .flatMap((run) =>
      /[\u3400-\u9fff]{2}/.test(run) ? [...run].slice(1).map((character, n) => run[n] + character) : [run],
    );
