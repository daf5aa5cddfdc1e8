// Changes a query before the search of Material gets it. Chinese text has no spaces, so it is divided
// into words that the pages have, the longest first. Punctuation has no meaning.
var __search = {
  transform(query) {
    const words = [];
    for (const run of query.match(/[\u4e00-\u9fff]+|[^\s\u200b\-.,;:!?()[\]{}"'`<>/|=+*~^。，、；：！？（）《》“”…—·→\u4e00-\u9fff]+/g) ?? []) {
      if (!/[\u4e00-\u9fff]/.test(run)) words.push(run);
      else words.push(...__search.divide(run));
    }
    return words.join(' ');
  },
  divide(run) {
    const words = [];
    for (let at = 0; at < run.length;) {
      let length = run.length - at;
      while (length > 1 && !chineseWords.has(run.substr(at, length))) --length;
      const word = run.substr(at, length);
      words.push(chineseWords.has(word) ? '+' + word : word);
      at += length;
    }
    return words;
  },
};
