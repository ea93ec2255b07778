/** What is not JSON of the API: the OpenAPI document, the reference page, a page about each error code. */
import { readFile } from 'node:fs/promises'
import { type Request, type Response, Router } from 'express'
import { ERROR_CODES, type ErrorCode } from '../../lib/errors/codes.ts'
import { DomainError } from '../../lib/errors/domain-error.ts'
import type { Reply } from '../commands/call.ts'
import type { Serving } from './bind-routes.ts'
import { type Exchange, exchangeOf } from './exchange.ts'

const HTML = 'text/html; charset=utf-8'
const PAGE_POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"

const REFERENCE = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>API reference</title>
<link rel="stylesheet" href="docs/swagger-ui.css">
</head>
<body>
<div id="reference"></div>
<script src="docs/swagger-ui-bundle.js"></script>
<script src="docs/reference.js"></script>
</body>
</html>
`

// validatorUrl: null, or the page would send the document to somebody else's server.
const REFERENCE_SCRIPT = `window.SwaggerUIBundle({
  url: 'v1/openapi.json',
  dom_id: '#reference',
  deepLinking: true,
  validatorUrl: null,
  displayOperationId: true,
  defaultModelsExpandDepth: 0,
})
`

const problemPage = (code: ErrorCode): string => {
  const { status, title } = ERROR_CODES[code]
  return `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>${title}</title></head>
<body>
<h1>${title}</h1>
<p>The API answers status ${status} with code <code>${code}</code>. What went wrong this time stands in the answer’s
<code>detail</code>, and field by field in <code>errors</code>. Quote its <code>request_id</code> when you ask for help.</p>
<p>Which calls answer this code is listed in the <a href="../docs">API reference</a>.</p>
</body>
</html>
`
}

/** From the installed package, never from a host of somebody else. */
const ASSETS = [
  {
    name: 'swagger-ui.css',
    type: 'text/css; charset=utf-8',
    file: import.meta.resolve('swagger-ui-dist/swagger-ui.css'),
  },
  {
    name: 'swagger-ui-bundle.js',
    type: 'text/javascript; charset=utf-8',
    file: import.meta.resolve('swagger-ui-dist/swagger-ui-bundle.js'),
  },
]

const page = (type: string, text: string | Buffer): Reply => ({
  status: 200,
  headers: { 'Content-Type': type, 'Content-Security-Policy': PAGE_POLICY },
  body: Buffer.from(text),
})

/** Serves these pages; `document` is the OpenAPI document. */
export const pagesRouter = (document: unknown, serving: Pick<Serving<unknown>, 'reply' | 'fail'>): Router => {
  const router = Router({ caseSensitive: true, strict: true })
  const openApi: Reply = {
    status: 200,
    headers: { 'Cache-Control': 'private, max-age=300' },
    body: Buffer.from(JSON.stringify(document)),
  }
  const serve = (path: string, answer: (request: Request) => Reply | Promise<Reply>): void => {
    const respond = async (exchange: Exchange, request: Request, response: Response): Promise<void> => {
      try {
        serving.reply(exchange, response, await answer(request))
      } catch (error) {
        serving.fail(exchange, response, error)
      }
    }
    const at = router.route(path)
    at.get((request, response) => {
      const exchange = exchangeOf(request)
      exchange.route = path
      void respond(exchange, request, response)
    })
    at.all((request, response) => {
      response.setHeader('Allow', 'GET, HEAD')
      serving.fail(exchangeOf(request), response, new DomainError('method_not_allowed', `${path} takes GET, HEAD`))
    })
  }
  serve('/v1/openapi.json', () => openApi)
  serve('/docs', () => page(HTML, REFERENCE))
  serve('/docs/reference.js', () => page('text/javascript; charset=utf-8', REFERENCE_SCRIPT))
  for (const { name, type, file } of ASSETS) {
    let content: Promise<Buffer> | undefined // read at the first visit: most servers are never asked
    serve(`/docs/${name}`, async () => page(type, await (content ??= readFile(new URL(file)))))
  }
  serve('/problems/:code', request => {
    const code = request.params['code'] as string
    if (!Object.hasOwn(ERROR_CODES, code)) throw new DomainError('route_not_found', 'There is no such error code')
    return page(HTML, problemPage(code as ErrorCode))
  })
  return router
}
