/** Letters that the service writes, by mail. */
export const LETTER_KINDS = ['magic_link', 'magic_link_notice', 'password_reset', 'invitation'] as const
export type LetterKind = (typeof LETTER_KINDS)[number]
