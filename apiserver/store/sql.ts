/**
 * Runs statements on the control-plane database: a `Database` for single reads, or a transaction.
 * Texts are constants: each is prepared once per connection, so none may be put together from values.
 */
export interface Sql {
  /** All rows of a statement. Columns are aliased in the text to the names of `Row`; bigint arrives as number. */
  rows<Row>(text: string, values?: readonly unknown[]): Promise<readonly Row[]>
  /** The first row, if any. */
  row<Row>(text: string, values?: readonly unknown[]): Promise<Row | undefined>
}
