import { DomainError } from '../../lib/errors/domain-error.ts'

const ranges = new Set(['*/*', 'application/*', 'application/json'])

const accepts = (header: string): boolean =>
  header.split(',').some(part => {
    const [range, ...parameters] = part.split(';').map(piece => piece.trim().toLowerCase())
    return range !== undefined && ranges.has(range) && !parameters.some(each => /^q=0(\.0{0,3})?$/.test(each))
  })

/** @throws DomainError `not_acceptable` when the caller does not take JSON */
export const checkAccept = (header: string | undefined): void => {
  if (header === undefined || header === '' || header === '*/*' || header === 'application/json') return
  if (!accepts(header)) throw new DomainError('not_acceptable', 'Answers are application/json only')
}
