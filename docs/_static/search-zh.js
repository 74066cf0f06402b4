// Sphinx names a stemmer for Chinese that it does not ship: words in Latin letters have English stems in its index.
class ChineseStemmer {
  stemWord(word) {
    return new EnglishStemmer().stemWord(word);
  }
}
