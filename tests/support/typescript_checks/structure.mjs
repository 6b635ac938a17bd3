// Proves that modules are declarations of types and calls of tools, and nothing else.
// Usage: node structure.mjs FILE, run in the folder with the packages. FILE is JSON:
// { runtime, modules: [{ name, text, tools: [[server, tool], ...] }] }. Prints a JSON list of what is wrong.
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";

const ts = createRequire(`${process.cwd()}/`)("typescript-api");
const { SyntaxKind: Kind } = ts;

const KEYWORDS = new Set(
  ["Unknown", "Never", "Undefined", "String", "Number", "Boolean"].map((name) => Kind[`${name}Keyword`]),
);
const LITERALS = new Set([Kind.StringLiteral, Kind.NumericLiteral, Kind.TrueKeyword, Kind.FalseKeyword, Kind.NullKeyword]);
const DIRECTIVES = ["referencedFiles", "typeReferenceDirectives", "libReferenceDirectives", "amdDependencies", "commentDirectives"];

const parsed = (text) => ts.createSourceFile("module.ts", text, ts.ScriptTarget.Latest, true, ts.ScriptKind.TS);

class Wrong extends Error {}

function must(condition, what, node) {
  if (!condition) throw new Wrong(node ? `${what}: ${node.getText().slice(0, 200)}` : what);
}

function modifiers(node) {
  return (node.modifiers ?? []).map((one) => one.getText()).join(" ");
}

function checkName(node) {
  must(ts.isIdentifier(node) || ts.isStringLiteral(node), "a name that is computed", node);
}

function checkMember(member, declared) {
  must(!member.modifiers, "a modifier on a property", member);
  if (ts.isPropertySignature(member)) {
    checkName(member.name);
    return checkType(member.type, declared);
  }
  must(ts.isIndexSignatureDeclaration(member), "a member that is no property", member);
  must(member.parameters.length === 1 && member.parameters[0].getText() === "key: string", "another index", member);
  checkType(member.type, declared);
}

function checkLiteral(literal) {
  const isNegative = ts.isPrefixUnaryExpression(literal) && literal.operator === Kind.MinusToken;
  must(LITERALS.has(isNegative ? literal.operand.kind : literal.kind), "a literal of another kind", literal);
}

function checkReference(type, declared) {
  must(ts.isIdentifier(type.typeName) && !type.typeArguments, "a reference with parts", type);
  must(declared.has(type.typeName.text), "a type that is not declared here", type);
}

function checkType(type, declared) {
  must(type, "a type that is missing");
  if (KEYWORDS.has(type.kind)) return;
  if (ts.isLiteralTypeNode(type)) return checkLiteral(type.literal);
  if (ts.isTypeReferenceNode(type)) return checkReference(type, declared);
  if (ts.isTypeLiteralNode(type)) return type.members.forEach((one) => checkMember(one, declared));
  if (ts.isUnionTypeNode(type) || ts.isIntersectionTypeNode(type)) return type.types.forEach((one) => checkType(one, declared));
  if (ts.isTupleTypeNode(type)) return type.elements.forEach((one) => checkType(one, declared));
  if (ts.isArrayTypeNode(type)) return checkType(type.elementType, declared);
  if ([Kind.ParenthesizedType, Kind.OptionalType, Kind.RestType].includes(type.kind)) return checkType(type.type, declared);
  must(false, "a type of another kind", type);
}

function checkDeclaration(node, declared) {
  must(modifiers(node) === "export" && !node.typeParameters, "a declaration of another form", node);
  if (ts.isInterfaceDeclaration(node)) {
    must(!node.heritageClauses, "an interface that extends", node);
    return node.members.forEach((one) => checkMember(one, declared));
  }
  must(ts.isTypeAliasDeclaration(node), "a statement that declares no type", node);
  checkType(node.type, declared);
}

// Gives the path that the method calls.
function checkMethod(node, declared) {
  must(ts.isMethodDeclaration(node) && modifiers(node) === "async", "no method", node);
  checkName(node.name);
  must(!node.typeParameters && !node.asteriskToken && !node.questionToken, "a method of another form", node);
  const [params, ...more] = node.parameters;
  must(more.length === 0 && params.name.getText() === "params" && !params.dotDotDotToken, "other parameters", node);
  must(!params.initializer || params.initializer.getText() === "{}", "a default that does something", params);
  checkType(params.type, declared);
  must(node.type.typeName?.getText() === "Promise" && node.type.typeArguments.length === 1, "no promise", node);
  checkType(node.type.typeArguments[0], declared);
  must(node.body.statements.length === 1, "a body with more than one statement", node);
  const [path] = node.body.statements[0].expression?.arguments ?? [];
  must(path && ts.isStringLiteral(path), "no call of a path", node);
  const bare = node.body.getText().replace(/\s+/g, " ");
  must(bare === `{ return callTool(${path.getText()}, params); }`, "another body", node.body);
  return path.text;
}

function checkTools(node, declared) {
  must(ts.isVariableStatement(node) && modifiers(node) === "export", "no tools", node);
  const [tools, ...more] = node.declarationList.declarations;
  must(more.length === 0 && tools.name.getText() === "tools" && !tools.type, "other variables", node);
  must(node.declarationList.flags & ts.NodeFlags.Const, "not constant", node);
  must(ts.isObjectLiteralExpression(tools.initializer), "tools are no object", node);
  return tools.initializer.properties.flatMap((group) => {
    must(ts.isPropertyAssignment(group) && ts.isIdentifier(group.name), "no group of tools", group);
    must(group.name.text !== "__proto__", "a prototype", group);
    must(ts.isObjectLiteralExpression(group.initializer), "a group that is no object", group);
    return group.initializer.properties.map((method) => checkMethod(method, declared));
  });
}

function checkModule({ text, tools }, runtime) {
  const source = parsed(text);
  must(source.parseDiagnostics.length === 0, `does not parse: ${source.parseDiagnostics[0]?.messageText}`);
  must(DIRECTIVES.every((name) => !source[name]?.length), "a comment that gives orders");
  must(source.pragmas.size === 0 && !source.checkJsDirective, "a comment that gives orders");
  const fixed = runtime.map((one) => one.getText());
  const statements = [...source.statements];
  const last = statements.splice(statements.length - fixed.length).map((one) => one.getText());
  must(JSON.stringify(last) === JSON.stringify(fixed), "another runtime");
  const declared = new Set(statements.slice(0, -1).map((one) => one.name?.text));
  must(declared.size === statements.length - 1, "a type that is declared twice");
  statements.slice(0, -1).forEach((one) => checkDeclaration(one, declared));
  const called = checkTools(statements.at(-1), declared).map((path) => path.split("/")).sort();
  const expected = tools.map((ids) => ids.join("__"));
  must(called.every((path) => path.length === 3 && path[0] === "" && path[1] === "tools"), "another path");
  const reached = called.map((path) => decodeURIComponent(path[2]));
  must(JSON.stringify(reached.sort()) === JSON.stringify(expected.sort()), "other tools than were given");
}

const given = JSON.parse(readFileSync(process.argv[2], "utf-8"));
const runtime = [...parsed(given.runtime).statements];
const wrong = given.modules.flatMap((module) => {
  try {
    checkModule(module, runtime);
    return [];
  } catch (error) {
    if (!(error instanceof Wrong)) throw error;
    return [`${module.name}: ${error.message}`];
  }
});
process.stdout.write(JSON.stringify(wrong));
