/** What becomes of the data at deletion, in the API's words: the resource's in lower case. */
import { z } from 'zod'
import type { DeletionPolicy } from '../../lib/model/environment.ts'

const WORDS = { Retain: 'retain', Delete: 'delete' } as const satisfies Record<DeletionPolicy, string>
type Word = (typeof WORDS)[DeletionPolicy]

/** `retain` keeps the data for a while in a known place, `delete` removes it. */
export const deletionPolicy = z
  .enum(WORDS)
  .meta({ description: 'What becomes of the data at deletion', example: 'delete' })

/** The resource's word for one of the API's. */
export const deletionPolicyOf = (word: Word): DeletionPolicy => (word === 'retain' ? 'Retain' : 'Delete')

/** The API's word for one of the resource's. */
export const deletionPolicyWord = (policy: DeletionPolicy): Word => WORDS[policy]
