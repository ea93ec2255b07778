/** The express application: begins a request, hands it to the router, answers what nothing else answers. */
import express, { type Express, type NextFunction, type Request, type Response, type Router } from 'express'
import { DomainError } from '../../lib/errors/domain-error.ts'
import type { Route } from '../contract/route.ts'
import { ROUTES } from '../contract/routes.ts'
import type { Serving } from './bind-routes.ts'
import { exchangeOf } from './exchange.ts'
import { pathOf } from './query.ts'
import type { Traffic } from './traffic.ts'

/** Where clients of OAuth ask. They are told in their words also what is refused before a route is found, or for its method. */
const OAUTH_PATHS: ReadonlySet<string> = new Set(
  Object.values<Route>(ROUTES).flatMap(({ speaksOAuth, path }) => (speaksOAuth === true ? path : [])),
)

/** `routers` are asked in order. */
export const createApp = (traffic: Traffic, fail: Serving<unknown>['fail'], routers: readonly Router[]): Express => {
  const app = express()
  app.disable('x-powered-by')
  app.disable('etag')
  app.enable('case sensitive routing')
  app.enable('strict routing')
  app.set('query parser', false)
  app.use((request: Request, response: Response, next: NextFunction) => {
    const exchange = traffic.begin(request, response)
    if (OAUTH_PATHS.has(pathOf(request.url))) exchange.speaksOAuth = true
    try {
      traffic.check(request)
    } catch (error) {
      fail(exchange, response, error)
      return
    }
    next()
  })
  for (const router of routers) app.use(router)
  app.use((request: Request, response: Response) => {
    fail(exchangeOf(request), response, new DomainError('route_not_found', 'There is no such route'))
  })
  // Four parameters are how express knows an error handler.
  app.use((error: unknown, request: Request, response: Response, _next: NextFunction) => {
    fail(exchangeOf(request), response, error)
  })
  return app
}
