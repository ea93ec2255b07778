/** Subjects of identity providers: who somebody is to one. */

/** A subject that reads like an actor of ours would vouch in the audit log for somebody else; `sso:` names one in a path. */
const RESERVED = /^(user|apikey|system|kubernetes|sso):/i
const MAX_SUBJECT = 255

/** Whether a text can be kept as a subject, or as what somebody is called. */
export const isKeepableSubject = (text: string): boolean =>
  text.length > 0 && text.length <= MAX_SUBJECT && text.isWellFormed() && !/[\u0000-\u001f\u007f]/.test(text)

/** Whether a text can be the subject that audit events name an account by: kept, and mistaken for nobody of ours. */
export const isUsableSubject = (text: string): boolean => isKeepableSubject(text) && !RESERVED.test(text)

const SSO_PREFIX = 'sso:'

/** The subject at an organization's own identity provider that a path names, `sso:<sub>`; undefined: it names none. */
export const ssoSubjectOf = (text: string): string | undefined =>
  text.startsWith(SSO_PREFIX) && isKeepableSubject(text.slice(SSO_PREFIX.length))
    ? text.slice(SSO_PREFIX.length)
    : undefined
