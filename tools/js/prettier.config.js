// How the page's scripts and styles are laid out.
module.exports = { printWidth: 110 };
