// The scripts are one program: report/page.py joins them, and what one declares another uses. tsc knows every name.
module.exports = [
  {
    files: ["**/*.js"],
    languageOptions: { ecmaVersion: 2022, sourceType: "script" },
    linterOptions: { reportUnusedDisableDirectives: "error" },
    rules: {
      eqeqeq: "error",
      "no-var": "error",
      "prefer-const": "error",
      "no-unused-vars": ["error", { vars: "local" }],
      "no-shadow": "off",
      "no-eval": "error",
      "no-implied-eval": "error",
      "no-new-func": "error",
      "no-fallthrough": "error",
      "no-self-compare": "error",
      "no-unreachable": "error",
      "no-loss-of-precision": "error",
      "no-constant-condition": "error",
      "no-dupe-keys": "error",
      "no-template-curly-in-string": "error",
      "array-callback-return": "error",
      "no-restricted-properties": [
        "error",
        { property: "innerHTML" },
        { property: "outerHTML" },
        { property: "insertAdjacentHTML" },
      ],
    },
  },
];
