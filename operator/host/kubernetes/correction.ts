/** Something of a cluster that somebody changed, and that is again as it should be. */
import type { Settled } from '../../../runtime/kubernetes/settle-object.ts'

export interface Correction {
  /** Of the object, as Kubernetes calls it. */
  readonly kind: string
  readonly name: string
  readonly how: Exclude<Settled, 'as it was'>
}

/** The same for people. */
export const correctionText = ({ kind, name, how }: Correction): string =>
  `The ${kind} ${name} was ${how === 'made' ? 'gone and was made anew' : 'not as it should be and was put right'}`
