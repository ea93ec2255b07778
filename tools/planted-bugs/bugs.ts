/** Bugs of authorization, as somebody could write them: one place in the product, and what stands there instead. */

/** One bug. `was` stands exactly once in the file: a bug that no longer fits is to be written anew. */
export interface Bug {
  /** What whoever uses it gets away with. */
  readonly what: string
  readonly file: string
  readonly was: string
  readonly now: string
  /** The model that has to find it alone, by the name of its test; without one the tests of authorization have to. */
  readonly model?: string
}

type Row = readonly [what: string, was: string, now: string]

export const inFile = (file: string, ...rows: readonly Row[]): readonly Bug[] =>
  rows.map(([what, was, now]) => ({ what, file, was, now }))

export const BUGS: readonly Bug[] = [
  ...inFile(
    'apiserver/auth/policy.ts',
    ['developers delete projects', `'project.delete': { role: 'admin'`, `'project.delete': { role: 'developer'`],
    ['viewers read the audit log', `'audit.read': { role: 'admin'`, `'audit.read': { role: 'viewer'`],
    ['viewers read passwords', `'connection.read': { role: 'developer'`, `'connection.read': { role: 'viewer'`],
    ['developers make members', `'member.write': { role: 'admin'`, `'member.write': { role: 'developer'`],
    ['developers may not write', `'environment.write': { role: 'developer'`, `'environment.write': { role: 'admin'`],
    [
      'keys and agents make keys',
      `'api-keys.write': { role: 'admin', credentials: PEOPLE`,
      `'api-keys.write': { role: 'admin', credentials: EVERY_KIND`,
    ],
    ['agents list keys', `credentials: [...PEOPLE, 'api_key']`, `credentials: EVERY_KIND`],
    [
      'agents make tokens',
      `'tokens.own': { role: 'self', credentials: PEOPLE`,
      `'tokens.own': { role: 'self', credentials: EVERY_KIND`,
    ],
    [
      'tokens get into the login',
      `'session.own': { role: 'self', credentials: ['session']`,
      `'session.own': { role: 'self', credentials: PEOPLE`,
    ],
    [
      'access tokens get into the login',
      `'session.own': { role: 'self', credentials: ['session']`,
      `'session.own': { role: 'self', credentials: ['session', 'oidc']`,
    ],
    [
      'tokens approve devices',
      `'device.decide': { role: 'self', credentials: ['session']`,
      `'device.decide': { role: 'self', credentials: PEOPLE`,
    ],
    ['anybody signed in administers the login', `{ role: 'operator', credentials`, `{ role: 'self', credentials`],
    ['nobody can leave by themself', `credentials: PEOPLE, orSelf: true`, `credentials: PEOPLE`],
  ),
  ...inFile(
    'apiserver/auth/authorize.ts',
    [
      'every kind of credential may call everything',
      'if (!row.credentials.includes(principal.kind))',
      'if (row.credentials.length === 0)',
    ],
    ['roles do not matter', 'if (role === undefined || !roleAtLeast(role, required))', 'if (role === undefined)'],
    [
      'strangers are told 403',
      `return\n    throw organizationNotFound()`,
      `return\n    throw tooLow(undefined, 'viewer')`,
    ],
    ['strangers come through', `return\n    throw organizationNotFound()`, 'return'],
    [
      'whoever names a member is that member',
      '(subject === principal.subject || subject === principal.userId)',
      'true',
    ],
    ['scopes hold everywhere', 'isWithin(target, scope) && roleAtLeast', 'roleAtLeast'],
    [
      'every scope reaches everything within',
      'isWithin(target, scope) && roleAtLeast(roleOfLevel(scope.level), required)',
      'isWithin(target, scope)',
    ],
    ['scopes are not looked at', 'if (scopes === undefined) return', 'if (scopes !== null) return'],
    [
      'production is never protected',
      '!environment.protectProduction) return',
      'environment.protectProduction) return',
    ],
    [
      'who is bound to one organization makes another',
      'row.mayCreate === true && principal.boundTo === undefined',
      'row.mayCreate === true',
    ],
    [
      'people of single sign-on get passwords here',
      'row.ownFactors === true && principal.boundTo !== undefined',
      'row.ownFactors === true && principal.role === undefined',
    ],
    ['everybody is an operator', 'if (principal.isOperator) return', 'if (principal.userId !== undefined) return'],
  ),
  ...inFile('lib/model/credential.ts', [
    'a role does not reach itself',
    'ROLES.indexOf(role) >= ROLES',
    'ROLES.indexOf(role) > ROLES',
  ]),
  ...inFile(
    'lib/model/scope.ts',
    ['deploy reaches what admins do', `deploy: 'developer'`, `deploy: 'admin'`],
    [
      'a scope of one environment holds for all',
      '(scope.environmentId === undefined || scope.environmentId === target.environmentId)',
      'true',
    ],
    [
      'a scope of one project holds for all',
      '(scope.projectId === undefined || scope.projectId === target.projectId) &&',
      'true &&',
    ],
    [
      'devices are granted more than they asked for',
      'LEVELS.indexOf(scope.level) <= LEVELS.indexOf(than.level) &&',
      'true &&',
    ],
  ),
  ...inFile('apiserver/auth/authenticate/account-token.ts', [
    'agents have the whole role',
    `credential.kind === 'agent' ? scopesOf(credential.scopes ?? [], credential.boundTo) : undefined`,
    'undefined',
  ]),
  ...inFile(
    'apiserver/auth/authenticate/api-key.ts',
    ['keys hold in every organization', `organizationId === key.organizationId ? 'admin' : undefined`, `'admin'`],
    ['every key is an admin’s', 'LEVELS.filter(level => key.scopes.includes(level))', 'LEVELS'],
  ),
  ...inFile(
    'apiserver/auth/authenticate/session.ts',
    [
      'sessions are owners’ wherever their user is a member',
      'role: session.role ?? undefined',
      `role: session.role === null ? undefined : 'owner'`,
    ],
    [
      'every session is an operator’s',
      'session.organizationId === null && session.isOperator',
      'session.organizationId === null',
    ],
  ),
  ...inFile('apiserver/auth/authenticate/oidc-token.ts', [
    'disabled people get in by their provider',
    'if (account.disabledAt !== null) return undefined',
    '',
  ]),
  ...inFile(
    'apiserver/store/credentials.ts',
    ['bound tokens reach other organizations', '\n      and (t.organization_id is null or t.organization_id = $2)', ''],
    ['revoked tokens work', 't.revoked_at is null and (t.expires_at', '(t.expires_at'],
    ['expired tokens work', '(t.expires_at is null or t.expires_at > now()) and u.', 'u.'],
    ['disabled people’s tokens work', ' and u.disabled_at is null', ''],
    ['revoked keys work', 'where k.digest = $1 and k.revoked_at is null', 'where k.digest = $1'],
  ),
  ...inFile(
    'apiserver/store/login/sessions.ts',
    ['disabled people’s sessions work', 'where t.digest = $1 and u.disabled_at is null', 'where t.digest = $1'],
    [
      'idle sessions work',
      's.last_used_at > now() - make_interval(secs => $3) and ${endOf(',
      '$3::float8 > 0 and ${endOf(',
    ],
    ['sessions live for ever', " and ${endOf('$4')} > now()`", '`'],
    [
      'sessions of single sign-on reach other organizations',
      '\n      and (s.organization_id is null or s.organization_id = $2)',
      '',
    ],
    [
      'anybody’s session can be ended',
      'where s.id = $1 and s.user_id = $2 returning',
      'where s.id = $1 and $2 <> $1 returning',
    ],
  ),
  ...inFile(
    'apiserver/store/login/sign-in-failures.ts',
    ['a right guess gets past the lock', '$5 and coalesce(locked_until <= now(), true) as passes', '$5 as passes'],
    [
      'right passwords lock their account',
      `const STAYS = 'f.locked_until > now() or $5'`,
      `const STAYS = 'f.locked_until > now()'`,
    ],
  ),
  ...inFile(
    'apiserver/store/tokens.ts',
    [
      'anybody’s token can be revoked',
      'where t.id = $1 and t.user_id = $2 for no key',
      'where t.id = $1 and $2 <> $1 for no key',
    ],
    ['anybody’s token shows what it did', 'where t.id = $1 and t.user_id = $2`', 'where t.id = $1 and $2 <> $1`'],
  ),
  ...inFile('apiserver/store/api-keys.ts', [
    'other organizations’ keys can be revoked',
    'where k.id = $1 and k.organization_id = $2 for',
    'where k.id = $1 and $2 <> $1 for',
  ]),
  ...inFile('apiserver/store/operations.ts', [
    'other organizations’ operations are shown',
    'where o.id = $1 and o.organization_id = $2',
    'where o.id = $1 and $2 <> $1',
  ]),
  ...inFile('apiserver/routes/operations/get-operation.ts', [
    'scopes do not hold for operations',
    'requireRole(\n',
    'Array.of(\n',
  ]),
  ...inFile(
    'apiserver/http/bind-routes.ts',
    ['what a body names is not what a scope is asked about', '?? fieldOf(body, field)', ''],
    ['browsers read passwords', 'if (route.serverToServer === true) checkServerToServer(request)', ''],
  ),
  ...inFile('apiserver/commands/revoke-token.ts', [
    'agents revoke their user’s tokens',
    `if (kind === 'agent' && tokenId !== credentialId)`,
    `if (kind === 'api_key')`,
  ]),
  ...inFile(
    'apiserver/commands/create-token.ts',
    ['a stolen token buys a longer one', 'await assertNotOutliving(sql, call, expiresAt, now)', ''],
    ['tokens are made for others’ organizations', 'await assertMember(sql, userId, reach)', ''],
  ),
  ...inFile('apiserver/commands/agent-reach.ts', [
    'scopes name other organizations than the binding',
    'scope.organizationId !== organizationId)',
    'scope.organizationId === undefined)',
  ]),
  ...inFile('apiserver/commands/token-room.ts', [
    'one token more than allowed',
    'if (used < MAX_ACTIVE_TOKENS) return',
    'if (used <= MAX_ACTIVE_TOKENS) return',
  ]),
  ...inFile('apiserver/commands/member-rules.ts', ['the last owner goes', 'userId)) === 0)', 'userId)) < 0)']),
  ...inFile(
    'apiserver/commands/put-member.ts',
    ['admins make owners', `if (role === 'owner' || before?.role === 'owner')`, `if (before?.role === 'owner')`],
    [
      'admins unmake owners',
      `role === 'owner' || before?.role === 'owner') requireRole`,
      `role === 'owner') requireRole`,
    ],
  ),
  ...inFile(
    'apiserver/commands/remove-member.ts',
    ['admins remove owners', `if (!leaves) requireRole(call, 'owner')`, ''],
    ['tokens outlive the membership', 'await revokeBoundTokens(sql, userId, organizationId)', '0'],
  ),
  ...inFile(
    'apiserver/commands/create-invitation.ts',
    ['admins invite owners', `if (role === 'owner') requireRole(call, 'owner')\n    const`, 'const'],
    ['admins replace owners’ invitations', `if (earlier.role === 'owner') requireRole(call, 'owner')`, ''],
  ),
  ...inFile('apiserver/commands/revoke-invitation.ts', [
    'admins take back owners’ invitations',
    `if (role === 'owner') requireRole(call, 'owner')`,
    '',
  ]),
  ...inFile(
    'apiserver/commands/login/accept-invitation.ts',
    ['invitations outlive who gave them', 'inviterRole !== null && roleAtLeast', 'true || roleAtLeast'],
    ['anybody signed in accepts', 'if ((await findUser(sql, callerId))?.email !== email) throw mismatch()', ''],
  ),
  ...inFile('apiserver/commands/put-project.ts', [
    'developers unprotect production',
    `if (protectProduction !== protectedBefore) requireRole(call, 'admin')`,
    '',
  ]),
  ...inFile('apiserver/commands/create-environment.ts', [
    'developers make protected production',
    'authorizeProduction(call, {',
    'void ({',
  ]),
  ...inFile('apiserver/commands/environment-access.ts', [
    'developers change protected production',
    'authorizeProduction(call, environment)',
    '',
  ]),
  ...inFile('apiserver/commands/read-connection.ts', [
    'developers read passwords of protected production',
    'authorizeProduction(call, environment)',
    '',
  ]),
  ...inFile('apiserver/commands/update-environment.ts', [
    'developers unprotect production’s data',
    `if (environment.kind === 'production') requireRole(call, 'admin')`,
    '',
  ]),
  ...inFile('apiserver/commands/login/end-sessions.ts', [
    'whoever is signed in ends anybody’s session',
    'isOperator ? endAnySession',
    'sql !== undefined ? endAnySession',
  ]),
  ...inFile(
    'apiserver/commands/device/approve-device.ts',
    ['a session of yesterday approves devices', 'await assertFresh(sql, call)', ''],
    ['devices get tokens of others’ organizations', 'await assertMember(sql, userId, grant)', ''],
  ),
  ...inFile(
    'apiserver/commands/login/first-administrator.ts',
    [
      'whoever claimed an address operates the service with its tokens',
      '...(await dispossess(sql, userId))',
      '...{ sessions_ended: 0, tokens_revoked: 0 }',
    ],
    ['whoever claimed an address keeps its second factor', 'await removeFactor(sql, userId)', 'false'],
  ),
  ...inFile(
    'apiserver/commands/login/reset-password.ts',
    [
      'tokens of whoever claimed an address outlive an operator’s link',
      'undefined : dispossess(sql, userId)',
      'undefined : undefined',
    ],
    [
      'a letter proves an address past its second factor',
      'issuedBy === null && account?.mfaEnabled === false',
      'issuedBy === null',
    ],
  ),
  ...inFile('apiserver/commands/login/prove-address.ts', [
    'whoever claimed an address keeps all of it when it is proved',
    'hadPassword ? await dispossess(sql, userId) : NOTHING',
    'NOTHING',
  ]),
]
