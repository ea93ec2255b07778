import assert from 'node:assert/strict'
import { ConfigError } from '../../runtime/config/parse-env.ts'
import { apiServerConfig } from './config.ts'
import { apiServerEnv, standaloneEnv } from './env.ts'

describe('the API server’s configuration', () => {
  it('has a default for everything that the single box does not decide', () => {
    const config = apiServerConfig({})
    assert.deepEqual(config.listen, { host: '127.0.0.1', port: 8080 })
    assert.equal(config.publicUrl, '')
    assert.equal(config.publicSignup, false)
    assert.equal(config.plan.caps.environmentsPerProject, undefined)
    assert.deepEqual(config.limits, {
      requestsPerMinute: 3000,
      mutationsPerMinute: 1000,
      connectionReadsPerMinute: 30,
      verificationsPerMinute: 6,
      anonymousPerMinute: 60,
      burst: 500,
    })
  })

  it('describes every variable', () => {
    for (const [name, schema] of [...Object.entries(apiServerEnv.shape), ...Object.entries(standaloneEnv.shape)]) {
      assert.match(name, /^SERVICE_[A-Z_]+$/)
      assert.ok((schema.description ?? '').length > 10, name)
    }
  })

  it('takes an empty variable for one that is not set', () => {
    assert.equal(apiServerConfig({ SERVICE_LISTEN: '', SERVICE_RATE_LIMIT_PER_MINUTE: '' }).listen.port, 8080)
  })

  it('reads IPv6 addresses, proxies and a public URL', () => {
    const config = apiServerConfig({
      SERVICE_LISTEN: '[::1]:9000',
      SERVICE_TRUSTED_PROXIES: '10.0.0.0/8, ::1',
      SERVICE_PUBLIC_URL: 'https://db.example.com/',
    })
    assert.deepEqual(config.listen, { host: '::1', port: 9000 })
    assert.equal(config.trustedProxies.length, 2)
    assert.equal(config.publicUrl, 'https://db.example.com')
  })

  const bad: [variable: string, value: string][] = [
    ['SERVICE_LISTEN', '8080'],
    ['SERVICE_LISTEN', '127.0.0.1:99999'],
    ['SERVICE_TRUSTED_PROXIES', '10.0.0.0/40'],
    ['SERVICE_RATE_LIMIT_PER_MINUTE', '-1'],
    ['SERVICE_RATE_LIMIT_PER_MINUTE', '1e3'],
    ['SERVICE_PREVIEW_DEFAULT_TTL_HOURS', '9000'],
    ['SERVICE_PUBLIC_SIGNUP', 'yes'],
    ['SERVICE_PUBLIC_URL', 'ftp://example.com'],
    ['SERVICE_PLAN_STORAGE', '10 GB'],
    ['SERVICE_LOG_LEVEL', 'loud'],
    ['SERVICE_CONSOLE_URL', 'console.example.com'],
    ['SERVICE_MAIL_WEBHOOK_URL', 'http://relay.example.com/letters'],
    ['SERVICE_DEFAULT_SMTP_PORT', '0'],
  ]
  for (const [variable, value] of bad)
    it(`refuses ${variable}=${value} and names it`, () => {
      assert.throws(
        () => apiServerConfig({ [variable]: value }),
        (error: unknown) => error instanceof ConfigError && error.message.includes(variable),
      )
    })

  describe('of the first administrator', () => {
    const hashOf = (cost: string) =>
      `$argon2id$v=19$${cost}$Ebv8V0/fZiDz8OuDGvsCiQ$BashT8msMmS+SVIrRlOEPX1p+tqQiRdViHV0vC728kg`
    const configured = (hash: string) =>
      apiServerConfig({ SERVICE_ADMIN_EMAIL: 'Root@example.com', SERVICE_ADMIN_PASSWORD_HASH: hash }).administrator

    for (const cost of ['m=19456,t=2,p=1', 'm=65536,t=3,p=4', 'm=262144,t=10,p=4'])
      it(`takes a hash of ${cost}`, () => {
        const passwordHash = hashOf(cost)
        assert.deepEqual(configured(passwordHash), { email: 'root@example.com', passwordHash })
      })

    for (const [what, hash] of [
      ['costs too much memory', hashOf('m=262145,t=2,p=1')],
      ['costs too many passes', hashOf('m=19456,t=11,p=1')],
      ['has too many lanes', hashOf('m=19456,t=2,p=5')],
      ['costs too little', hashOf('m=12288,t=3,p=1')],
      ['is of another kind', hashOf('m=19456,t=2,p=1').replace('argon2id', 'argon2i')],
      ['is a password', 'seven wet stones at the pier'],
    ] as const)
      it(`refuses one that ${what}: it names the variable, what is expected and the command that makes one, and never shows it`, () => {
        assert.throws(
          () => configured(hash),
          (error: unknown) =>
            error instanceof ConfigError &&
            /SERVICE_ADMIN_PASSWORD_HASH.* m=19456-262144, t=2-10, p=1-4.* node apiserver\/hash-password\.ts /.test(
              error.message,
            ) &&
            !error.message.includes(hash),
        )
      })
  })

  describe('of mail', () => {
    const CONSOLE = { SERVICE_CONSOLE_URL: 'https://console.example.com/' }
    const RELAY = {
      SERVICE_MAIL_WEBHOOK_URL: 'https://relay.example.com/letters',
      SERVICE_MAIL_WEBHOOK_TOKEN: 'secret',
    }
    const SMTP = {
      SERVICE_DEFAULT_SMTP_HOST: 'mail.example.com',
      SERVICE_DEFAULT_SMTP_ADMIN_EMAIL: 'service@example.com',
    }

    it('is none by default, nor with half of what SMTP needs', () => {
      const { SERVICE_DEFAULT_SMTP_HOST: host, SERVICE_DEFAULT_SMTP_ADMIN_EMAIL: sender } = SMTP
      assert.equal(apiServerConfig({}).mail, undefined)
      assert.equal(apiServerConfig({ SERVICE_DEFAULT_SMTP_HOST: host }).mail, undefined)
      assert.equal(apiServerConfig({ SERVICE_DEFAULT_SMTP_ADMIN_EMAIL: sender }).mail, undefined)
    })

    it('takes the relay before SMTP', () => {
      const { mail, consoleUrl } = apiServerConfig({ ...CONSOLE, ...RELAY, ...SMTP })
      assert.deepEqual(mail, {
        by: 'webhook',
        url: 'https://relay.example.com/letters',
        token: 'secret',
        caFile: undefined,
      })
      assert.equal(consoleUrl, 'https://console.example.com')
    })

    it('begins with TLS at port 465 and asks for STARTTLS at every other', () => {
      for (const [port, implicitTls] of [
        [undefined, false],
        ['587', false],
        ['465', true],
        ['25', false],
        ['2465', false],
      ] as const) {
        const { mail } = apiServerConfig({ ...CONSOLE, ...SMTP, SERVICE_DEFAULT_SMTP_PORT: port })
        assert.ok(mail?.by === 'smtp')
        assert.deepEqual([mail.port, mail.implicitTls], [Number(port ?? 587), implicitTls])
      }
    })

    const refused: readonly (readonly [environment: Record<string, string>, variable: string])[] = [
      [RELAY, 'SERVICE_CONSOLE_URL'],
      [SMTP, 'SERVICE_CONSOLE_URL'],
      [{ ...CONSOLE, ...RELAY, SERVICE_MAIL_WEBHOOK_TOKEN: '' }, 'SERVICE_MAIL_WEBHOOK_TOKEN'],
      [
        { ...CONSOLE, ...SMTP, SERVICE_DEFAULT_SMTP_ADMIN_EMAIL: 'Service <s@e.com>' },
        'SERVICE_DEFAULT_SMTP_ADMIN_EMAIL',
      ],
      [{ ...CONSOLE, ...SMTP, SERVICE_DEFAULT_SMTP_USER: 'service' }, 'SERVICE_DEFAULT_SMTP_PASSWORD'],
    ]
    for (const [environment, variable] of refused)
      it(`is refused with a word about ${variable}: ${Object.keys(environment).join(' ')}`, () => {
        assert.throws(
          () => apiServerConfig(environment),
          (error: unknown) => error instanceof ConfigError && error.message.includes(variable),
        )
      })
  })

  describe('of who says who people are', () => {
    const OIDC = {
      SERVICE_AUTH_MODE: 'oidc',
      SERVICE_OIDC_ISSUER_URL: 'https://id.example.com/realms/a',
      SERVICE_OIDC_CLIENT_ID: 'svc',
      SERVICE_OIDC_CLIENT_SECRET: 'secret',
    }

    it('is the built-in login, unless another default is given', () => {
      assert.deepEqual(apiServerConfig({}).auth, { mode: 'builtin' })
      assert.deepEqual(apiServerConfig({ SERVICE_AUTH_MODE: 'builtin' }, 'oidc').auth, { mode: 'builtin' })
      const { SERVICE_AUTH_MODE: _mode, ...unsaid } = OIDC
      assert.equal(apiServerConfig(unsaid, 'oidc').auth.mode, 'oidc')
      assert.equal(apiServerConfig(unsaid).auth.mode, 'builtin')
    })

    it('is an identity provider, with an audience that is the client unless it is said', () => {
      const expected = {
        mode: 'oidc',
        issuer: OIDC.SERVICE_OIDC_ISSUER_URL,
        introspectionUrl: undefined,
        clientId: 'svc',
        clientSecret: 'secret',
        audience: 'svc',
        caFile: undefined,
        operators: [],
      }
      assert.deepEqual(apiServerConfig(OIDC).auth, expected)
      assert.deepEqual(apiServerConfig({ ...OIDC, SERVICE_OIDC_AUDIENCE: 'api' }).auth, {
        ...expected,
        audience: 'api',
      })
      const { auth } = apiServerConfig({ ...OIDC, SERVICE_OIDC_OPERATOR_CLAIMS: 'groups=admins, sub=auth0|a=b,' })
      assert.deepEqual(auth.mode === 'oidc' && auth.operators, [
        { name: 'groups', value: 'admins' },
        { name: 'sub', value: 'auth0|a=b' },
      ])
      for (const issuer of ['http://127.0.0.1:9000', 'http://localhost:9000', 'http://[::1]:9000'])
        assert.equal(apiServerConfig({ ...OIDC, SERVICE_OIDC_ISSUER_URL: issuer }).auth.mode, 'oidc')
    })

    const refused: readonly (readonly [Record<string, string>, string])[] = [
      [{ SERVICE_AUTH_MODE: 'oidc' }, 'SERVICE_OIDC_CLIENT_ID'],
      [{ ...OIDC, SERVICE_OIDC_ISSUER_URL: '' }, 'SERVICE_OIDC_ISSUER_URL'],
      [{ ...OIDC, SERVICE_OIDC_CLIENT_SECRET: '' }, 'SERVICE_OIDC_CLIENT_SECRET'],
      [{ ...OIDC, SERVICE_OIDC_ISSUER_URL: 'http://id.example.com' }, 'SERVICE_OIDC_ISSUER_URL'],
      [{ ...OIDC, SERVICE_OIDC_ISSUER_URL: 'http://127.0.0.1.example.com' }, 'SERVICE_OIDC_ISSUER_URL'],
      [{ ...OIDC, SERVICE_OIDC_ISSUER_URL: 'https://a:b@id.example.com' }, 'SERVICE_OIDC_ISSUER_URL'],
      [{ ...OIDC, SERVICE_OIDC_INTROSPECTION_URL: 'http://10.0.0.1/i' }, 'SERVICE_OIDC_INTROSPECTION_URL'],
      [{ ...OIDC, SERVICE_AUTH_MODE: 'none' }, 'SERVICE_AUTH_MODE'],
      ...['admins', '=admins', 'groups=', 'a b=c'].map(
        claims => [{ ...OIDC, SERVICE_OIDC_OPERATOR_CLAIMS: claims }, 'SERVICE_OIDC_OPERATOR_CLAIMS'] as const,
      ),
    ]
    for (const [environment, variable] of refused)
      it(`is refused with a word about ${variable}: ${JSON.stringify(Object.values(environment))}`, () => {
        assert.throws(
          () => apiServerConfig(environment),
          (error: unknown) =>
            error instanceof ConfigError && error.message.includes(variable) && !error.message.includes('"secret"'),
        )
      })
  })
})
