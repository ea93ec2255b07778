/**
 * Runs statements on the control-plane database: a `Database` for single reads, or a transaction.
 * Texts are constants: each is prepared once per connection, so none may be put together from values.
 * Statements of a transaction are carried out in the order of the calls; those that do not need each other's rows may be
 * sent without waiting in between (`together`), which saves round trips.
 */
export interface Sql {
  /** All rows of a statement. Columns are aliased in the text to the names of `Row`; bigint arrives as number. */
  rows<Row>(text: string, values?: readonly unknown[]): Promise<readonly Row[]>
  /** The first row, if any. */
  row<Row>(text: string, values?: readonly unknown[]): Promise<Row | undefined>
}

/**
 * Waits for statements that were sent together. Throws what the first of them in order threw: after it the others fail
 * too, but only because the transaction is over.
 */
export const together = async <const Statements extends readonly Promise<unknown>[]>(
  ...statements: Statements
): Promise<{ -readonly [N in keyof Statements]: Awaited<Statements[N]> }> => {
  const results = await Promise.allSettled(statements)
  const failed = results.find(result => result.status === 'rejected')
  if (failed !== undefined) throw failed.reason
  return results.map(result => (result as PromiseFulfilledResult<unknown>).value) as {
    -readonly [N in keyof Statements]: Awaited<Statements[N]>
  }
}
