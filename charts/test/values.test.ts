import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Ajv } from 'ajv'
import { parse } from 'yaml'

interface Node {
  readonly type?: string
  readonly description?: string
  readonly additionalProperties?: unknown
  readonly properties?: Readonly<Record<string, Node>>
  readonly items?: Node
}

const read = (chart: string, file: string): string => readFileSync(join(import.meta.dirname, '..', chart, file), 'utf8')

const schemaOf = (chart: string): Node => JSON.parse(read(chart, 'values.schema.json')) as Node

/** Every value of a schema, by its path. */
const valuesOf = (node: Node, path = ''): [string, Node][] => [
  ...Object.entries(node.properties ?? {}).flatMap(([name, inner]) => [
    [`${path}.${name}`, inner] as [string, Node],
    ...valuesOf(inner, `${path}.${name}`),
  ]),
  ...(node.items === undefined ? [] : valuesOf(node.items, `${path}[]`)),
]

/** The paths of what is written in values; lists and maps that are empty are leaves. */
const pathsOf = (values: unknown, path = ''): string[] => {
  if (values === null || typeof values !== 'object' || Array.isArray(values) || Object.keys(values).length === 0)
    return [path]
  return Object.entries(values).flatMap(([name, inner]) => pathsOf(inner, `${path}.${name}`))
}

for (const chart of ['svc-crds', 'svc-platform'])
  describe(`the values of ${chart}`, () => {
    const schema = schemaOf(chart)
    const accepts = (values: unknown): boolean => new Ajv({ strict: false }).validate(schema, values)
    const defaults = () => parse(read(chart, 'values.yaml')) as Record<string, unknown>

    it('are each described', () => {
      const all = valuesOf(schema)
      assert.ok(all.length > 1)
      assert.deepEqual(
        all.filter(([, { description = '' }]) => description === '').map(([path]) => path),
        [],
      )
    })

    it('are closed at every level, but for names that the user chooses, what the cluster judges and what Helm itself shares', () => {
      const open = valuesOf(schema)
        .filter(([path, { type }]) => type === 'object' && path !== '.global' && !path.endsWith('.affinity'))
        .filter(([, { properties, additionalProperties }]) =>
          properties === undefined
            ? JSON.stringify(additionalProperties) !== '{"type":"string"}'
            : additionalProperties !== false,
        )
      assert.equal(schema.additionalProperties, false)
      assert.deepEqual(
        open.map(([path]) => path),
        [],
      )
    })

    it('have defaults, which the schema accepts, and no default that it does not know', () => {
      assert.ok(accepts(defaults()))
      const known = new Set(valuesOf(schema).map(([path]) => path))
      assert.deepEqual(
        pathsOf(defaults()).filter(path => !known.has(path) && !/\.resources\.|\.settings\./.test(path)),
        [],
      )
    })

    it('refuse a key that nothing reads', () => assert.equal(accepts({ ...defaults(), replicas: 2 }), false))
  })

describe('the values of svc-platform', () => {
  const validate = new Ajv({ strict: false }).compile(schemaOf('svc-platform'))

  it('accept those for high availability', () => {
    assert.ok(validate(parse(read('svc-platform', 'values-ha.yaml'))), JSON.stringify(validate.errors))
  })

  it('take what is secret from a Secret', () => {
    const secretSettings = { SERVICE_MAIL_WEBHOOK_TOKEN: { secretName: 'mail', key: 'token' } }
    assert.ok(validate({ apiServer: { secretSettings } }), JSON.stringify(validate.errors))
  })

  it('take what names a file from a ConfigMap or a Secret', () => {
    const fileSettings = {
      SERVICE_MAIL_CA_FILE: { configMapName: 'authorities', key: 'mail.crt' },
      SERVICE_OIDC_CA_FILE: { secretName: 'oidc', key: 'ca.crt' },
    }
    assert.ok(validate({ apiServer: { fileSettings } }), JSON.stringify(validate.errors))
  })

  const refused: readonly [string, object][] = [
    ['a misspelt setting', { apiServer: { settings: { SERVICE_LOGLEVEL: 'debug' } } }],
    ['a setting of the other program', { apiServer: { settings: { SERVICE_OPERATOR_CONCURRENCY: '4' } } }],
    ['what the chart itself sets', { apiServer: { settings: { SERVICE_LISTEN: '0.0.0.0:1' } } }],
    [
      'the secret of an identity provider among the settings',
      { apiServer: { settings: { SERVICE_OIDC_CLIENT_SECRET: 'x' } } },
    ],
    ['a secret among the settings', { apiServer: { settings: { SERVICE_DEFAULT_SMTP_PASSWORD: 'x' } } }],
    ['a secret by its value', { apiServer: { secretSettings: { SERVICE_DEFAULT_SMTP_PASSWORD: 'x' } } }],
    [
      'a setting that is no secret, from one',
      { apiServer: { secretSettings: { SERVICE_LISTEN: { secretName: 'a', key: 'b' } } } },
    ],
    ['a path of a file among the settings', { apiServer: { settings: { SERVICE_OIDC_CA_FILE: '/etc/ca.crt' } } }],
    [
      'a file from two places',
      { apiServer: { fileSettings: { SERVICE_OIDC_CA_FILE: { configMapName: 'a', secretName: 'b', key: 'c' } } } },
    ],
    ['an external database without its Secret', { database: { mode: 'external' } }],
    ['no replica', { operator: { replicas: 0 } }],
    ['a tag that is none', { image: { tag: '' } }],
    ['an exposure without its type', { environments: { production: { exposure: { host: 'db.example.com' } } } }],
  ]
  for (const [what, values] of refused) it(`refuse ${what}`, () => assert.equal(validate(values), false))
})
