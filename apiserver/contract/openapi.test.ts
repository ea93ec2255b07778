import assert from 'node:assert/strict'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { z } from 'zod'
import { ERROR_CODES } from '../../lib/errors/codes.ts'
import { accessSentence } from '../auth/policy.ts'
import { openApiDocument } from './openapi.ts'
import { errorCodesOf, type Route } from './route.ts'
import { ROUTES } from './routes.ts'

interface Operation {
  readonly operationId: string
  readonly description?: string
  readonly parameters?: readonly unknown[]
  readonly requestBody?: { readonly content: Record<string, { readonly schema: object; readonly example?: unknown }> }
  readonly responses: Record<
    string,
    { readonly content?: Record<string, { readonly schema: object; readonly example?: unknown }> }
  >
  readonly security: readonly unknown[]
}

const routes: readonly Route[] = Object.values(ROUTES)

describe('the OpenAPI document', () => {
  const document = JSON.parse(JSON.stringify(openApiDocument(routes, accessSentence))) as {
    paths: Record<string, Record<string, Operation>>
    components: { schemas: Record<string, { enum?: string[] }>; parameters: object; headers: object }
    servers: { url: string }[]
  }
  const operations = routes.map(route => ({ route, operation: document.paths[route.path]?.[route.method] }))

  it('holds every route once, under its operationId', () => {
    for (const { route, operation } of operations) assert.equal(operation?.operationId, route.operationId)
    const count = Object.values(document.paths).reduce((sum, methods) => sum + Object.keys(methods).length, 0)
    assert.equal(count, routes.length)
    for (const [id, route] of Object.entries(ROUTES)) assert.equal(route.operationId, id)
  })

  it('names every error code of a route under its status, and all codes in one enumeration', () => {
    for (const { route, operation } of operations)
      for (const code of errorCodesOf(route))
        assert.ok(
          JSON.stringify(operation?.responses[String(ERROR_CODES[code].status)]).includes(`\`${code}\``),
          `${route.operationId} ${code}`,
        )
    assert.deepEqual(document.components.schemas['ErrorCode']?.enum, Object.keys(ERROR_CODES))
  })

  it('has an example for every body, which its own schema accepts', () => {
    // The document's schemas refer to each other within it.
    const ajv = new Ajv2020({ strict: false, validateFormats: false })
    ajv.addSchema({ $id: 'svc', ...document })
    const compiled = new Map<string, ReturnType<typeof ajv.compile>>()
    const compile = (schema: object): ReturnType<typeof ajv.compile> => {
      const text = JSON.stringify(schema).replaceAll('"#/components', '"svc#/components')
      const validate = compiled.get(text) ?? ajv.compile(JSON.parse(text) as object)
      compiled.set(text, validate)
      return validate
    }
    const check = (schema: object, example: unknown, where: string): void => {
      const validate = compile(schema)
      assert.ok(example !== undefined, `${where} has no example`)
      assert.ok(validate(example), `${where}: ${JSON.stringify(validate.errors)}`)
    }
    for (const { route, operation } of operations) {
      for (const { schema, example } of Object.values(operation?.requestBody?.content ?? {}))
        check(schema, example, `${route.operationId} request`)
      for (const [status, response] of Object.entries(operation?.responses ?? {}))
        for (const { schema, example } of Object.values(response.content ?? {}))
          check(schema, example, `${route.operationId} ${status}`)
    }
  })

  it('has examples that the server itself would accept', () => {
    for (const route of routes) {
      if (route.body !== undefined) route.body.parse(route.examples.request)
      if (route.success.body !== undefined) route.success.body.parse(route.examples.response)
    }
  })

  it('asks for a bearer everywhere but at the health routes, and says who may call', () => {
    const open = operations.filter(({ operation }) => operation?.security.length === 0)
    assert.deepEqual(open.map(({ route }) => route.operationId).sort(), [
      'completePasswordReset',
      'finishSso',
      'getHealth',
      'getReadiness',
      'getSetup',
      'pollDeviceToken',
      'previewInvitation',
      'previewMagicLink',
      'previewPasswordReset',
      'requestDeviceCode',
      'requestMagicLink',
      'requestPasswordReset',
      'setUp',
      'signIn',
      'signInMfa',
      'startSso',
      'verifyMagicLink',
    ])
    for (const { route, operation } of operations)
      if (route.policy !== 'public') assert.match(operation?.description ?? '', /Needs the role|needs no role/)
  })

  it('leaves responses open for later fields and closes requests', () => {
    const text = (schema: object | undefined): string => JSON.stringify(schema ?? {})
    for (const { route, operation } of operations) {
      for (const response of Object.values(operation?.responses ?? {}))
        assert.ok(!text(response).includes('"additionalProperties":false'), route.operationId)
      if (route.body !== undefined)
        assert.ok(text(operation?.requestBody).includes('"additionalProperties":false'), route.operationId)
    }
    for (const [name, schema] of Object.entries(document.components.schemas))
      assert.ok(!text(schema).includes('"additionalProperties":false'), name)
  })

  // The hint of a letter is of its address, to whoever has the letter.
  it('knows of no hint and no question by whose answer somebody would be let in', () => {
    const names = new Set<string>()
    JSON.parse(JSON.stringify(document), (name, value: unknown) => (names.add(name), value))
    assert.ok(names.has('password') && names.has('mfa_token'))
    assert.deepEqual(
      [...names].filter(name => /(?<!email_)hint|question|secret_word|maiden/i.test(name)),
      [],
    )
  })

  it('is relative to the server that serves it', () => {
    assert.deepEqual(document.servers[0]?.url, '/')
  })

  it('shares headers and parameters', () => {
    assert.deepEqual(Object.keys(document.components.parameters).sort(), [
      'IdempotencyKey',
      'OptionalIdempotencyKey',
      'OrgHeader',
    ])
    assert.ok(Object.keys(document.components.headers).includes('RequestId'))
  })

  it('every path parameter of a template is in the route’s schema', () => {
    for (const route of routes) {
      const names = [...route.path.matchAll(/\{(\w+)\}/g)].map(match => match[1])
      assert.deepEqual(names, Object.keys((route.params ?? z.object({})).shape), route.operationId)
    }
  })
})
