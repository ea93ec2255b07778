/** Every generated file of the repository. `make generate` writes them, `make check` fails when one is stale. */

export interface Generator {
  /** From the root of the repository. */
  readonly path: string
  /** The whole content of the file; the same bytes for the same sources. */
  readonly render: () => string | Promise<string>
}

export const GENERATORS: readonly Generator[] = []
