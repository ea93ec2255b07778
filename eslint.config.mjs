import tseslint from 'typescript-eslint'

/** process.env is read in two places only; everything else gets values. */
const noEnvironment = [
  "MemberExpression[object.name='process'][property.name='env']",
  "MemberExpression[object.name='process'][property.value='env']",
  "VariableDeclarator[init.name='process'] > ObjectPattern > Property[key.name='env']",
].map(selector => ({
  selector,
  message: 'Read the environment only in config/env.ts (and in testkit, tools, bench, e2e)',
}))

/** A test that is skipped says why: testkit/skip-because.ts does both. */
const noSilentSkip = ['skip', 'xit', 'xdescribe'].map(name => ({
  selector: name === 'skip' ? "CallExpression[callee.property.name='skip']" : `CallExpression[callee.name='${name}']`,
  message: 'Skip by skipBecause: it prints why',
}))

export default tseslint.config(
  { ignores: ['node_modules/**', '**/generated/**', 'coverage/**', '.svc/**', '**/*.mjs', '*.cjs'] },
  ...tseslint.configs.strictTypeChecked,
  {
    languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname } },
    rules: {
      // `${number}` in a message is what a reader expects; the rule would ask for String(n) everywhere.
      '@typescript-eslint/restrict-template-expressions': ['error', { allowNumber: true, allowBoolean: true }],
      // A Promise-returning function without await is how ports with synchronous adapters look.
      '@typescript-eslint/require-await': 'off',
      '@typescript-eslint/switch-exhaustiveness-check': ['error', { considerDefaultExhaustiveForUnions: true }],
      '@typescript-eslint/no-unused-vars': ['error', { argsIgnorePattern: '^_', varsIgnorePattern: '^_' }],
      // The API types of @kubernetes/client-node are classes, and what is on the wire is literals of their shape.
      '@typescript-eslint/no-unsafe-class-instance-assignment': 'off',
      '@typescript-eslint/no-confusing-void-expression': ['error', { ignoreArrowShorthand: true }],
      'no-restricted-syntax': ['error', ...noEnvironment],
    },
  },
  {
    files: ['**/config/env.ts', 'testkit/**', 'tools/**', 'bench/**', 'e2e/**', '**/*.test.ts'],
    rules: { 'no-restricted-syntax': ['error', ...noSilentSkip] },
  },
  {
    files: ['testkit/skip-because.ts'],
    rules: { 'no-restricted-syntax': 'off' },
  },
  {
    // Table-driven tests index into literals and build bad input on purpose.
    files: ['**/*.test.ts', 'testkit/**', 'e2e/**', 'bench/**', '**/*.contract.ts'],
    rules: {
      '@typescript-eslint/no-non-null-assertion': 'off',
      '@typescript-eslint/no-unsafe-assignment': 'off',
      '@typescript-eslint/no-unsafe-member-access': 'off',
      '@typescript-eslint/no-unsafe-argument': 'off',
    },
  },
)
