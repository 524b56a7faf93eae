import type { Command } from 'commander'

/** The options that name the controller to ask. */
export function withConnection(command: Command): Command {
  return command
    .option(
      '--config <file>',
      'configuration of a controller on this host: asked by its admin socket',
    )
    .option(
      '--url <url>',
      'any controller, https://host:port: asked in the session of flotilla login',
    )
    .option('--ca <file>', 'CA certificates that --url is verified against, with --session-file')
    .option(
      '--session-file <file>',
      "token of an administrator's session, in a file of mode 0600, or - for standard input; with --ca",
    )
}
