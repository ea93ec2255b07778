/** Subjects of identity providers, which audit events name as they are. */

/** A subject that reads like an actor of ours would vouch in the audit log for somebody else. */
const RESERVED = /^(user|apikey|system|kubernetes):/i
const MAX_SUBJECT = 255

/** Whether a text can be the subject of an account: kept, named in a path, and mistaken for nobody of ours. */
export const isUsableSubject = (text: string): boolean =>
  text.length > 0 &&
  text.length <= MAX_SUBJECT &&
  text.isWellFormed() &&
  !/[\u0000-\u001f\u007f]/.test(text) &&
  !RESERVED.test(text)
