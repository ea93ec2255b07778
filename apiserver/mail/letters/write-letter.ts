/** The words of every letter. Links lead to the console and nowhere else. */
import type { LetterKind } from '../../../lib/model/letter.ts'
import { foreignName } from './foreign-name.ts'
import { type LetterWords, letterText, type WrittenLetter } from './letter-text.ts'

type Parameters = Readonly<Record<string, string>>

const parameter = (parameters: Parameters, name: string): string => {
  const value = parameters[name]
  if (value === undefined) throw new TypeError(`A letter needs ${name}`)
  return value
}

const IGNORE = 'If you did not ask for this, ignore this letter: nothing happens.'

const WORDS: Readonly<Record<LetterKind, (parameters: Parameters, consoleUrl: string) => LetterWords>> = {
  magic_link: (parameters, consoleUrl) => ({
    subject: 'Your sign-in link',
    paragraphs: ['Somebody, hopefully you, asked to sign in with this address.'],
    link: { label: 'Sign in', url: `${consoleUrl}/auth/magic?token=${parameter(parameters, 'token')}` },
    code: { label: 'Or type this code where you asked for it', code: parameter(parameters, 'code') },
    notes: ['Both work once, for 15 minutes. Give the code to nobody: we never ask for it.', IGNORE],
  }),
  magic_link_notice: (_parameters, consoleUrl) => ({
    subject: 'Signing in needs your password',
    paragraphs: [
      'Somebody, hopefully you, asked for a sign-in link for this address.',
      'This account administers the service, so it gets no links: sign in with your password and your second factor.',
    ],
    link: { label: 'Go to the sign-in page', url: `${consoleUrl}/sign-in` },
    notes: [IGNORE],
  }),
  password_reset: (parameters, consoleUrl) => ({
    subject: 'Set a new password',
    paragraphs: ['Somebody, hopefully you, asked to set a new password for this account.'],
    link: { label: 'Set a new password', url: `${consoleUrl}/reset-password/${parameter(parameters, 'token')}` },
    notes: [
      'The link works once, for one hour. A new password ends every session of the account; a second factor stays as it is.',
      IGNORE,
    ],
  }),
  invitation: (parameters, consoleUrl) => {
    const organization = foreignName(
      parameter(parameters, 'organization_name'),
      parameter(parameters, 'organization_id'),
    )
    const inviter = foreignName(parameter(parameters, 'inviter_name'), 'A member')
    return {
      subject: `Invitation to ${organization}`,
      paragraphs: [
        `${inviter} invites you to the organization “${organization}”, as ${parameter(parameters, 'role')}.`,
      ],
      link: {
        label: 'Look at the invitation',
        url: `${consoleUrl}/invitations/${parameter(parameters, 'token')}`,
      },
      notes: [
        'The link works once, for seven days.',
        'If you do not know what this is about, ignore this letter: you are a member of nothing until you accept.',
      ],
    }
  },
}

/** @throws TypeError when a parameter is missing */
export const writeLetter = (kind: LetterKind, parameters: Parameters, consoleUrl: string): WrittenLetter =>
  letterText(WORDS[kind](parameters, consoleUrl))
