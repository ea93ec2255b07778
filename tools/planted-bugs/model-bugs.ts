/** Bugs of links, codes and invitations, each of which the model of what it breaks has to find alone. */
import { type Bug, inFile } from './bugs.ts'

const foundBy = (model: string, ...bugs: readonly (readonly Bug[])[]): readonly Bug[] =>
  bugs.flat().map(bug => ({ ...bug, model }))

export const MODEL_BUGS: readonly Bug[] = [
  ...foundBy(
    'magic-link',
    inFile(
      'apiserver/store/login/magic-links.ts',
      [
        'links work twice',
        'const SPEND = `delete from magic_links where token_digest = $1 and expires_at > now() returning email`',
        'const SPEND = `select email from magic_links where token_digest = $1 and expires_at > now()`',
      ],
      [
        'links do not run out',
        'const SPEND = `delete from magic_links where token_digest = $1 and expires_at > now() returning email`',
        'const SPEND = `delete from magic_links where token_digest = $1 returning email`',
      ],
      ['a new link keeps the guesses of the old one', ' guesses = 0,', ''],
    ),
  ),
  ...foundBy(
    'device-flow',
    inFile(
      'apiserver/store/login/device-requests.ts',
      [
        'a token that was fetched is told for as long as its code is known',
        'case when d.told_until > now() then d.sealed_token end',
        'd.sealed_token',
      ],
      [
        'whoever polls too soon is told so and nothing else',
        'case when before.soon and d.state in',
        'case when before.soon and d.state not in',
      ],
    ),
    inFile('apiserver/commands/device/poll-device-token.ts', [
      'a code that ran out is good once it is approved',
      'if (poll.expired) return',
      `if (poll.expired && poll.state === 'pending') return`,
    ]),
    inFile('apiserver/commands/device/approve-device.ts', [
      'who approves second takes the grant over',
      `if (row?.state !== 'pending') throw`,
      `if (row?.state !== 'pending' && row?.decidedBy === userId) throw`,
    ]),
  ),
  ...foundBy(
    'invitations',
    inFile('apiserver/commands/login/accept-invitation.ts', [
      'invitations are accepted twice',
      `await removeInvitation(sql, id)\n    await withdrawLetters(sql, 'invitation', id)`,
      `await withdrawLetters(sql, 'invitation', id)`,
    ]),
    inFile('apiserver/store/login/invitations.ts', [
      'invitations do not run out',
      `const OPEN = 'i.expires_at > now()'`,
      `const OPEN = 'i.expires_at is not null'`,
    ]),
    inFile('apiserver/commands/revoke-invitation.ts', [
      'the letter of an invitation that was taken back is sent',
      `await withdrawLetters(sql, 'invitation', id)`,
      '',
    ]),
  ),
]
